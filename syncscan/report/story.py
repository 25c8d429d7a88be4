"""From an Analysis to its story: verdict, what to change, findings, habits; derived once, drawn by every renderer.

Names in a story are as they stand in the trace: each renderer escapes them for its own medium.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.phases import PhaseSummary, phases_of
from syncscan.model.step import Bound
from syncscan.report import habits, host, remedies
from syncscan.report.habits import ToldHabit
from syncscan.report.phrases import lacking, replayed, sentences, steps_found, summary, waited, what, whereabouts
from syncscan.report.remedies import ToldRemedy
from syncscan.report.units import duration

VERDICTS = {
    Bound.DEVICE: "The device is the limit",
    Bound.HOST: "The host is the limit",
    Bound.SYNC: "Syncs are the limit",
    Bound.INPUT: "The input is the limit",
    Bound.COMMUNICATION: "Communication is the limit",
    Bound.UNKNOWN: "What limits the step can't be told",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFinding:
    """What a report says of a finding first; `of` has the rest."""

    of: Finding
    number: int
    """Its place among the findings, from 0."""
    id: str
    rule: str
    severity: Severity
    title: str
    what: str
    """Op and innermost scope."""
    where: str
    """Line, scopes, op."""
    saves: str
    waits: str
    idle: str
    """How long the device stands idle behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that a report tells, in the order in which it tells it."""

    bound: Bound
    verdict: str
    """What the step is bound by, without a full stop."""
    reason: str
    """The numbers that rests on."""
    lacking: tuple[str, ...]
    """What the trace lacks, and what is withheld for it."""
    summary: str
    """How many places wait, how long, and how much shorter the step would be without them."""
    nothing: str
    """Why removing syncs gains nothing; empty where it does, or where the verdict says it. Stands before the list."""
    remedies: tuple[ToldRemedy, ...]
    """What to change, the largest gain first."""
    then: str
    """What limits the step without its syncs; empty where removing them gains nothing. Stands behind the list."""
    findings: tuple[ToldFinding, ...]
    habits: tuple[ToldHabit, ...]
    host_leads: bool
    """Whether where the host's time goes belongs on the first screen."""
    host_sentence: str
    """Where it goes; empty where nothing tells it."""
    host_tables: tuple[host.Table, ...]
    host_notes: tuple[str, ...]
    phases: tuple[PhaseSummary, ...]
    """What a served step does, by batch."""
    steps_found: str
    warnings: tuple[str, ...]

    @property
    def because(self) -> str:
        """The verdict's reason with what the trace lacks."""
        return sentences(self.reason, *self.lacking)

    @property
    def opening(self) -> str:
        """All that stands between the verdict and what to do."""
        return sentences(self.reason, self.host_sentence if self.host_leads else "", *self.lacking, self.summary)

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, in sentences."""
        return tuple(said for said in (self.nothing, *remedies.in_words(self.remedies), self.then) if said)


def story_of(analysis: Analysis) -> Story:
    """The story of any analysis; what can't be told of it is empty."""
    told = remedies.told(analysis)
    return Story(
        bound=analysis.step.bound,
        verdict=VERDICTS[analysis.step.bound],
        reason=analysis.step.reason,
        lacking=tuple(lacking(analysis)),
        summary=summary(analysis),
        nothing=_nothing(analysis, told),
        remedies=told,
        then=_then(analysis, told),
        findings=tuple(_finding(number, f, analysis) for number, f in enumerate(analysis.findings)),
        habits=habits.told(analysis, replayed(analysis.step)),
        host_leads=host.leads(analysis),
        host_sentence=host.sentence(analysis),
        host_tables=tuple(host.tables(analysis.host_time)),
        host_notes=tuple(host.notes(analysis.host_time)),
        phases=tuple(phases_of(analysis.trace)),
        steps_found=steps_found(analysis),
        warnings=analysis.warnings,
    )


def _nothing(analysis: Analysis, told: tuple[ToldRemedy, ...]) -> str:
    """Said only where the list doesn't say otherwise: a sync that saves a little may stand in it."""
    outlook = analysis.step.outlook
    if outlook is None or outlook.gains or any(r.members for r in told):
        return ""
    return outlook.beside if told else outlook.said


def _then(analysis: Analysis, told: tuple[ToldRemedy, ...]) -> str:
    outlook = analysis.step.outlook
    if outlook is None or not outlook.gains:
        return ""
    return outlook.beside if any(r.habit for r in told) else outlook.said


def _finding(number: int, f: Finding, analysis: Analysis) -> ToldFinding:
    return ToldFinding(
        of=f,
        number=number,
        id=f.id,
        rule=f.rule,
        severity=f.severity,
        title=f.diagnosis.title,
        what=what(f),
        where=whereabouts(f),
        saves=duration(f.gain.recoverable_us) if f.gain else "–",
        waits=waited(f.wait_us, analysis.step),
        idle=waited(f.bubble_us, analysis.step),
    )
