"""The analysis of one trace: what every report renders and users query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.habit import Habit
from syncscan.model.host import UNKNOWN_HOST, Host
from syncscan.model.program_run import ProgramRun
from syncscan.model.projection import Projection, Projects, Remedy, RemovalGroup, Schedule
from syncscan.model.race import Race
from syncscan.model.states import Obstacle, States
from syncscan.model.step import SOUND, Integrity, StepSummary
from syncscan.model.trace import Trace
from syncscan.model.view import EVERYTHING, Shown, View, shown

if TYPE_CHECKING:
    import pandas as pd


class Picture(msgspec.Struct, frozen=True):
    """A drawn picture; as the last line of a notebook's cell it is shown, and a saved notebook stores it."""

    svg: str
    """Content of the file: `Path("step.svg").write_text(picture.svg)`."""
    alt: str
    """Text alternative."""

    def __repr__(self) -> str:
        return f"Picture(alt={self.alt!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("alt", self.alt)]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return what IPython shows, by MIME type."""
        return {"image/svg+xml": self.svg, "text/plain": self.alt}


class Analysis(msgspec.Struct, frozen=True, eq=False):
    """Everything syncscan knows about one trace: measurements, projected gains, and methods for further questions.

    `syncscan.analyze` returns it. It displays itself: `print(analysis)` is the text report, a notebook shows a table.
    """

    trace: Trace
    step: StepSummary
    """The measured step and what bounds it; times in µs."""
    findings: tuple[Finding, ...]
    """The syncs, largest gain first."""
    groups: tuple[RemovalGroup, ...] = ()
    """Findings worth removing together, best saving per change first."""
    habits: tuple[Habit, ...] = ()
    """Other costs of the step, or errors in its timing, largest gain first."""
    host_time: Host = UNKNOWN_HOST
    """Where the step's host time goes, as sampled and as counted in the trace."""
    remedies: tuple[Remedy, ...] = ()
    """Changes worth making, syncs and habits in one list, largest gain first."""
    races: tuple[Race, ...] = ()
    """Uses of one memory that nothing orders: of a dry run, or the few that a recording shows."""
    run: ProgramRun | None = None
    """The program's whole run as far as capture watched it; None where it didn't."""
    phases: tuple[Analysis | None, ...] = ()
    """Analyses of the traces of the run's phases, in order; None for a phase without a trace."""
    obstacles: tuple[Obstacle, ...] = ()
    """Obstacles to compiling the network of a launch-bound step, or to holding it in CUDA graphs."""
    states: States | None = None
    """The step with and without its syncs, eager and compiled; None where launches don't limit it."""
    integrity: Integrity = SOUND
    """Missing data, and the numbers withheld because of it."""
    whole: Trace | None = None
    """The trace with all its processes, if the file holds several and this analysis covers one."""
    warnings: tuple[str, ...] = ()
    """Missing data and problems while reading, one sentence each."""
    view: View = EVERYTHING
    """Which findings and habits reports show."""
    projector: Projects | None = None
    """The stage that replays the step; None unless `syncscan.analyze` returned this analysis."""

    def __repr__(self) -> str:
        bound = f"bound: {self.step.bound.value}"
        return f"<Analysis of {self.trace.info.path!r}: {len(self.findings)} findings, {bound}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return what rich prints: the summary rather than every column of the trace."""
        return [("path", self.trace.info.path), ("findings", len(self.findings)), ("bound", self.step.bound.value)]

    def __str__(self) -> str:
        """Return the text report."""
        return self._rendered("text")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return what IPython shows, by MIME type."""
        return {"text/html": self._rendered("fragment"), "text/plain": self._rendered("text")}

    @property
    def shown(self) -> Shown:
        """Findings and habits that the view shows, as every report lists them."""
        step = self.step
        return shown(self.view, self.findings, self.habits, step.unprofiled_us or step.observed_us)

    @property
    def replayable(self) -> bool:
        """Return whether the step can be projected: its replay takes its time, and `syncscan.analyze` was used."""
        return self.projector is not None and self.projector.projectable

    def finding(self, id: str) -> Finding:
        """Return the finding with this id.

        Raises:
            KeyError: there is none.
        """
        for finding in self.findings:
            if finding.id == id:
                return finding
        raise KeyError(id)

    def whatif(
        self,
        *remove: str,
        step_ms: float | None = None,
        keep_timing: bool = False,
        launches: str | None = None,
        fix: bool = False,
    ) -> Projection:
        """Project the step without the findings that these selectors name, and with its launches replaced.

        Args:
            remove: selectors, each `all`, `scope:GLOB`, `rule:ID`, `op:GLOB` or `id:ID`; without any, nothing goes.
            step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.
            keep_timing: keep explicit synchronizations, whatever the selectors say: they are wanted for timing.
            launches: `eager`, as they are; `compile`, the network under `torch.compile`; `reduce-overhead`, that with
                CUDA graphs; `graph`, the whole step as one CUDA graph. What breaks a graph and isn't removed still
                does. With any of them, the range also covers what may go, or grow, along with the syncs.
            fix: also take out what the rules' fixes do: the op around a wait and what only leads up to it, less what
                comes in its place. Without effect on `launches`, and where a rule can't say it.

        Raises:
            UsageError: a selector is invalid or matches nothing; launches is unknown; or the trace holds nothing
                to replay, or a step that is compiled already.
            RuntimeError: this analysis wasn't made by `syncscan.analyze`.
        """
        return self._projects().whatif(remove, step_ms=step_ms, keep_timing=keep_timing, launches=launches, fix=fix)

    def schedule(
        self, *remove: str, at: int | None = None, step_ms: float | None = None, launches: str | None = None
    ) -> Schedule | None:
        """Return one step with the selected findings fixed, launch by launch; None where nothing was launched.

        Args:
            remove: selectors, as for `whatif`.
            at: a time in ns on the trace's clock; of the steps that are replayed, the one around it or the nearest.
            step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.
            launches: how its launches are made, as for `whatif`.

        Raises:
            UsageError: a selector is invalid or matches nothing; launches is unknown; or the step is compiled already.
            RuntimeError: this analysis wasn't made by `syncscan.analyze`.
        """
        return self._projects().schedule(remove, at=at, step_ms=step_ms, launches=launches)

    def to_frame(self) -> pd.DataFrame:
        """Return the findings as a tidy pandas frame, a row each, with the columns of `report.frames`."""
        from syncscan.report.frames import finding_frame

        return finding_frame(self)

    @property
    def host(self) -> pd.DataFrame:
        """Host time of a step as a pandas frame with a row per line of a function, below its caller.

        Columns and dtypes as in `report.frames.HOST_COLUMNS`; empty where capture didn't sample.
        """
        from syncscan.report.frames import host_frame

        return host_frame(self.host_time)

    def to_html(self) -> str:
        """Return the report as one self-contained HTML page."""
        return self._rendered("html")

    def to_json(self) -> str:
        """Return the analysis as indented JSON, schema `syncscan.analysis/2`; times in µs."""
        return self._rendered("json")

    def to_markdown(self) -> str:
        """Return the report as Markdown, fit for a pull request."""
        return self._rendered("markdown")

    def evidence(self, id: str) -> str:
        """Return Markdown that proves a finding to others: trace, wait, awaited work, projected gain.

        Args:
            id: the id of a finding.

        Raises:
            KeyError: there is none.
        """
        from syncscan.report import evidence

        return evidence.render(self, self.finding(id))

    def picture(self) -> Picture:
        """Return the step of the costliest sync, before and after its fixes, as a picture for notebooks and files.

        Raises:
            UsageError: no step of the trace can be replayed.
        """
        from syncscan.report import svg

        return svg.picture(self)

    def to_saved(self) -> str:
        """Return the analysis as JSON that every command accepts in place of its trace; see `syncscan.analyze`.

        By custom it is written to a file `NAME.syncscan.json`.
        """
        from syncscan.attribute import kept_sources
        from syncscan.report import saved

        sources = kept_sources(f.source for f in self.findings if f.source)
        return saved.render(self, self.to_json(), sources)

    def _projects(self) -> Projects:
        if self.projector is None:
            raise RuntimeError("this analysis was made without what-if; use syncscan.analyze(path)")
        return self.projector

    def _rendered(self, form: str) -> str:
        from syncscan import report

        return report.render(self, form)
