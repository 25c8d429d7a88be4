"""Build the run's part of the JSON report; times in µs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.program_run import RunPhase
from syncscan.model.step import Bound
from syncscan.report.document import about
from syncscan.report.program_run import analyses_of, gain_share, saved_share, sentence, verdict_of


class RunLineDocument(Struct, frozen=True):
    """A line of the program in which a phase of its run was sampled."""

    file: str
    line: int
    function: str
    share: Annotated[float | None, about("of the run's time; None where nothing was timed")]


class PhaseFindingDocument(Struct, frozen=True):
    """A sync of a phase; a step is a round of the phase's loop, or the whole phase."""

    id: str
    rule: str
    title: str
    severity: Severity
    file: str | None
    line: int | None
    per_step: float
    wait_us: float
    recoverable_us: float | None


class RunPhaseDocument(Struct, frozen=True):
    """Work that the program does between or within its steps, but not in each of them."""

    kind: str
    name: str
    file: str
    function: str
    first: Annotated[int, about("the first of its lines")]
    last: Annotated[int, about("the last of its lines")]
    share: Annotated[float | None, about("of the run's time; None where nothing was timed")]
    every: Annotated[float | None, about("number of steps until it repeats; None if it ran once")]
    lines: tuple[RunLineDocument, ...]
    trace: Annotated[str | None, about("name of the trace that recorded part of it")]
    missing: Annotated[str | None, about("why it wasn't recorded, if that was requested")]
    bound: Bound | None
    verdict: str
    step_us: Annotated[float | None, about("one iteration of its loop, or the whole phase")]
    recoverable_us: Annotated[float | None, about("of that time")]
    gain_share: Annotated[float | None, about("of the run's time")]
    findings: tuple[PhaseFindingDocument, ...]
    rounds: Annotated[float | None, about("iterations of its loop each time, if a dry run counted them")]


class RunDocument(Struct, frozen=True):
    """The program's whole run, as far as a capture watched it or a dry run ran it."""

    sentence: str
    steps: Annotated[int, about("number of steps seen")]
    watched_us: Annotated[float | None, about("their total time; None if nothing was timed")]
    counted: Annotated[int, about("number of undisturbed steps, on which the mean and the shares are based")]
    mean_us: Annotated[float | None, about("per step, including the phases between steps; None if nothing was timed")]
    median_us: float | None
    period: Annotated[int, about("period of the steps' times, in steps")]
    period_us: Annotated[tuple[float, ...], about("the median time of each step of a period")]
    steps_share: Annotated[float | None, about("the steps' own part of the run's time")]
    gain_share: Annotated[float | None, about("of the run's time, for all that is recorded")]
    phases: tuple[RunPhaseDocument, ...]


def run_document(analysis: Analysis) -> RunDocument | None:
    """Return the run as its JSON document; None if it wasn't watched."""
    run = analysis.run
    if run is None:
        return None
    return RunDocument(
        sentence=sentence(analysis),
        steps=run.steps,
        watched_us=run.watched_us,
        counted=run.counted,
        mean_us=run.mean_us,
        median_us=run.median_us,
        period=run.period,
        period_us=tuple(run.period_us),
        steps_share=run.steps_share,
        gain_share=gain_share(analysis),
        phases=tuple(_phase(phase, of) for phase, of in zip(run.phases, analyses_of(analysis), strict=True)),
    )


def _phase(phase: RunPhase, of: Analysis | None) -> RunPhaseDocument:
    saves = None if of is None else saved_share(of)
    return RunPhaseDocument(
        kind=phase.kind,
        name=phase.name,
        file=phase.file,
        function=phase.function,
        first=phase.first,
        last=phase.last,
        share=phase.share,
        every=phase.every,
        lines=tuple(RunLineDocument(line.file, line.line, line.function, line.share) for line in phase.lines),
        trace=phase.trace or None,
        missing=phase.missing or None,
        bound=None if of is None else of.step.bound,
        verdict=verdict_of(phase, of),
        step_us=None if of is None else of.step.unprofiled_us or of.step.observed_us,
        recoverable_us=None if of is None else of.step.recoverable_us,
        gain_share=None if saves is None or phase.share is None else phase.share * saves,
        findings=() if of is None else tuple(map(_finding, of.findings)),
        rounds=phase.rounds,
    )


def _finding(f: Finding) -> PhaseFindingDocument:
    source = f.where.source
    return PhaseFindingDocument(
        id=f.id,
        rule=f.rule,
        title=f.diagnosis.title,
        severity=f.severity,
        file=None if source is None else source.file,
        line=None if source is None else source.line,
        per_step=f.per_step,
        wait_us=f.wait_us,
        recoverable_us=f.gain.recoverable_us if f.gain else None,
    )
