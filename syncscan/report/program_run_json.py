"""Build the run's part of the JSON report; times in µs."""

from __future__ import annotations

from typing import Annotated

from msgspec.structs import asdict

from syncscan.model.analysis import Analysis
from syncscan.model.program_run import ProgramRun, RunPhase
from syncscan.model.step import Bound
from syncscan.report.document import about
from syncscan.report.finding_json import FindingDocument, finding_document
from syncscan.report.program_run import analyses_of, gain_share, saved_share, sentence, verdict_of


class RunPhaseDocument(RunPhase, frozen=True, kw_only=True):
    """A phase, with the analysis of its trace; a step is a round of its loop, or the whole phase."""

    bound: Bound | None
    verdict: str
    step_us: Annotated[float | None, about("one iteration of its loop, or the whole phase")]
    recoverable_us: Annotated[float | None, about("of that time")]
    gain_share: Annotated[float | None, about("of the run's time")]
    findings: tuple[FindingDocument, ...]


class RunDocument(ProgramRun, frozen=True, kw_only=True):
    """The program's whole run, as far as a capture watched it or a dry run ran it."""

    sentence: str
    gain_share: Annotated[float | None, about("of the run's time, for all that is recorded")]
    phases: tuple[RunPhaseDocument, ...]


def run_document(analysis: Analysis) -> RunDocument | None:
    """Return the run as its JSON document; None if it wasn't watched."""
    run = analysis.run
    if run is None:
        return None
    phases = tuple(_phase(phase, of) for phase, of in zip(run.phases, analyses_of(analysis), strict=True))
    whole = {**asdict(run), "phases": phases}
    return RunDocument(**whole, sentence=sentence(analysis), gain_share=gain_share(analysis))


def _phase(phase: RunPhase, of: Analysis | None) -> RunPhaseDocument:
    saves = None if of is None else saved_share(of)
    return RunPhaseDocument(
        **asdict(phase),
        bound=None if of is None else of.step.bound,
        verdict=verdict_of(phase, of),
        step_us=None if of is None else of.step.unprofiled_us or of.step.observed_us,
        recoverable_us=None if of is None else of.step.recoverable_us,
        gain_share=None if saves is None or phase.share is None else phase.share * saves,
        findings=() if of is None else tuple(finding_document(f, of) for f in of.findings),
    )
