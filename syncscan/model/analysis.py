"""The analysis of one trace: the value that every report renders, and that a user asks further questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.habit import Habit
from syncscan.model.host import UNKNOWN_HOST, Host
from syncscan.model.integrity import SOUND, Integrity
from syncscan.model.likeness import Likeness
from syncscan.model.picture import Picture
from syncscan.model.program_run import ProgramRun
from syncscan.model.projection import Group, Overlap, Pipeline, Projection, Projects
from syncscan.model.race import Race
from syncscan.model.remedy import Remedy
from syncscan.model.schedule import Schedule
from syncscan.model.states import States
from syncscan.model.step import StepSummary
from syncscan.model.trace import Trace
from syncscan.model.view import EVERYTHING, Shown, View, shown

if TYPE_CHECKING:
    import pandas as pd


class Analysis(msgspec.Struct, frozen=True, eq=False):
    """Everything syncscan found out about one trace: what was measured, what it would gain, and further questions.

    `syncscan.analyze` makes it, whole. It shows itself: `print(analysis)` is the text report, a notebook shows a table.
    """

    trace: Trace
    step: StepSummary
    """The measured step and what bounds it; times in µs."""
    findings: tuple[Finding, ...]
    """The syncs, the largest gain first."""
    groups: tuple[Group, ...] = ()
    """Findings worth removing together, the best saving a change first."""
    overlaps: tuple[Overlap, ...] = ()
    """How far the device's streams overlapped; empty with one stream."""
    habits: tuple[Habit, ...] = ()
    """What else costs the step time, or spoils its timing, the largest gain first."""
    host_time: Host = UNKNOWN_HOST
    """Where the step's host time goes, as sampled and as counted in the trace."""
    remedies: tuple[Remedy, ...] = ()
    """What is worth changing, syncs and habits in one list, the largest gain first."""
    races: tuple[Race, ...] = ()
    """Uses of one memory that nothing orders, as a dry run met them; empty of a recording."""
    run: ProgramRun | None = None
    """The program's whole run, as far as capture watched it; None where it didn't."""
    phases: tuple[Analysis | None, ...] = ()
    """Of each phase of the run, in its order, the trace that holds a part of it; None of one without."""
    states: States | None = None
    """The step with its syncs removed or not and its network compiled or not; None where launches don't hold it."""
    integrity: Integrity = SOUND
    """What the trace lacks, and which numbers are withheld for it."""
    whole: Trace | None = None
    """The trace with all its processes, where the file holds several and this is said of one."""
    warnings: tuple[str, ...] = ()
    """What the trace lacks, and what went wrong while it was read; a sentence each."""
    view: View = EVERYTHING
    """What of the findings and habits reports show."""
    likeness: Likeness | None = None
    """Of a dry run what its findings cost in a recording, where that was asked."""
    _projector: Projects | None = None
    """Replays the step; `api` hands it in, as a value can't import the stage that makes it."""
    _renderer: Callable[..., str] | None = None
    """Writes the report in a format; handed in likewise."""
    _painter: Callable[[Analysis, str], Picture] | None = None
    """Draws a picture; handed in likewise."""
    _framer: Callable[[Analysis, str], Any] | None = None
    """Makes a pandas frame; handed in likewise."""

    def __repr__(self) -> str:
        bound = f"bound: {self.step.bound.value}"
        return f"<Analysis of {self.trace.info.path!r}: {len(self.findings)} findings, {bound}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What rich prints: the same, and not every column of the trace."""
        return [("path", self.trace.info.path), ("findings", len(self.findings)), ("bound", self.step.bound.value)]

    def __str__(self) -> str:
        """The text report."""
        return self._rendered("text") if self._renderer else repr(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What IPython shows: MIME type → text."""
        if self._renderer is None:
            return {"text/plain": repr(self)}
        return {"text/html": self._rendered("fragment"), "text/plain": self._rendered("text")}

    @property
    def shown(self) -> Shown:
        """What of the findings and habits its view lets through: what every report lists."""
        step = self.step
        return shown(self.view, self.findings, self.habits, step.unprofiled_us or step.observed_us)

    @property
    def replayable(self) -> bool:
        """Whether the step can be replayed: the trace holds device work, and `syncscan.analyze` made this analysis."""
        return self._projector is not None and self._projector.replayable

    @property
    def projector(self) -> Projects | None:
        """What replays the step; None where `syncscan.analyze` didn't make this analysis."""
        return self._projector

    def finding(self, id: str) -> Finding:
        """The finding with this id.

        Raises:
            KeyError: there is none.
        """
        for finding in self.findings:
            if finding.id == id:
                return finding
        raise KeyError(id)

    def whatif(
        self, *remove: str, step_ms: float | None = None, keep_timing: bool = False, launches: str | None = None
    ) -> Projection:
        """The step without the findings that these selectors name, and with its launches made another way.

        Args:
            remove: selectors, each `all`, `scope:GLOB`, `rule:ID`, `op:GLOB` or `id:ID`; without any, nothing goes.
            step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.
            keep_timing: keep explicit synchronises, whatever the selectors say: they are wanted for timing.
            launches: `eager`, as they are; `compile`, the network under `torch.compile`; `reduce-overhead`, that with
                CUDA graphs; `graph`, the whole step as one CUDA graph. What breaks a graph and isn't removed still
                does. With any of them the range also holds what may go, or grow, along with the syncs.

        Raises:
            UsageError: a selector is none, or names nothing; there is no such way to launch; or the trace holds nothing
                to replay, or a step that is compiled already.
            RuntimeError: this analysis wasn't made by `syncscan.analyze`.
        """
        return self._projects().whatif(remove, step_ms=step_ms, keep_timing=keep_timing, launches=launches)

    def pipeline(self, scope: str, beside: str = "", *, step_ms: float | None = None) -> Pipeline:
        """An upper bound on what running a scope on a stream of its own, a step ahead, would save.

        Args:
            scope: glob of the scope that would run ahead.
            beside: glob of the only scope that it would run beside; by default all the rest of the step.
            step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.

        Raises:
            UsageError: no scope has such a name; or the trace holds nothing to replay.
            RuntimeError: this analysis wasn't made by `syncscan.analyze`.
        """
        return self._projects().pipeline(scope, beside, step_ms=step_ms)

    def schedule(self, *remove: str, at: int | None = None, step_ms: float | None = None) -> Schedule | None:
        """One step without the findings that these selectors name, launch by launch; None where nothing was launched.

        Args:
            remove: selectors, as for `whatif`.
            at: a time in ns on the trace's clock; of the steps that are replayed, the one around it or the nearest.
            step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.

        Raises:
            UsageError: a selector is none, or names nothing.
            RuntimeError: this analysis wasn't made by `syncscan.analyze`.
        """
        return self._projects().schedule(remove, at=at, step_ms=step_ms)

    def to_frame(self) -> pd.DataFrame:
        """The findings as a tidy pandas frame, a row each; columns and dtypes as in `report.finding_table.COLUMNS`."""
        return self._framed("findings")

    @property
    def host(self) -> pd.DataFrame:
        """Where a step's host time goes, as a pandas frame with a row a line of a function, each below its caller.

        Columns and dtypes as in `report.host_table.COLUMNS`; empty where capture didn't sample.
        """
        return self._framed("host")

    def to_html(self) -> str:
        """The report as one self-contained HTML page."""
        return self._rendered("html")

    def to_json(self) -> str:
        """The analysis as indented JSON, schema `syncscan.analysis/1`; times in µs."""
        return self._rendered("json")

    def to_markdown(self) -> str:
        """The report as Markdown, fit for a pull request."""
        return self._rendered("markdown")

    def evidence(self, id: str) -> str:
        """Markdown that proves a finding to somebody else: the trace, the wait, what was awaited, what it would gain.

        Args:
            id: of a finding.

        Raises:
            KeyError: there is none.
        """
        return self._rendered("evidence", finding=self.finding(id))

    def picture(self, of: str = "timeline") -> Picture:
        """A picture that a notebook shows and keeps, as PNG; needs matplotlib (the extra `notebook`).

        Args:
            of: `timeline`, the step of the costliest sync in lanes; `host`, the sampled tree of functions as an icicle.

        Raises:
            UsageError: there is no such picture, or the trace holds nothing to draw.
            MissingExtra: matplotlib isn't installed.
            RuntimeError: this analysis wasn't made by `syncscan.analyze`.
        """
        if self._painter is None:
            raise RuntimeError("this analysis was made without pictures; use syncscan.analyze(path)")
        return self._painter(self, of)

    def to_saved(self) -> str:
        """The analysis as JSON with what every command needs to take it in place of its trace; see `syncscan.analyze`.

        By custom it is written to a file `NAME.syncscan.json`.
        """
        return self._rendered("saved")

    def _projects(self) -> Projects:
        if self._projector is None:
            raise RuntimeError("this analysis was made without what-if; use syncscan.analyze(path)")
        return self._projector

    def _framed(self, of: str) -> pd.DataFrame:
        if self._framer is None:
            raise RuntimeError("this analysis was made without frames; use syncscan.analyze(path)")
        frame: pd.DataFrame = self._framer(self, of)
        return frame

    def _rendered(self, form: str, **options: Any) -> str:
        if self._renderer is None:
            raise RuntimeError("this analysis was made without renderers; use syncscan.analyze(path)")
        return self._renderer(self, form, **options)
