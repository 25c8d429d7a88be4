"""From an Analysis to its story: verdict, what to change, findings, habits; derived once, drawn by every renderer.

Names in a story are as they stand in the trace: each renderer escapes them for its own medium.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import asdict

from syncscan.facts.phases import PhaseSummary, phases_of
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Phase, Severity
from syncscan.model.race import Race
from syncscan.model.step import Bound
from syncscan.model.view import Hidden, Shown
from syncscan.report import dry, habits, host, program_run, races, remedies
from syncscan.report.habits import ToldHabit
from syncscan.report.phrases import (
    lacking,
    measurable,
    replayed,
    saving,
    sentences,
    spread,
    steps_found,
    summary,
    waited,
    what,
    whereabouts,
)
from syncscan.report.remedies import ToldRemedy
from syncscan.report.units import percent, times

NOT_PROJECTED = "–"
RANKED = "Ranked by what each saves alone; what is 'at most' or not projected comes last."


class ToldFinding(msgspec.Struct, frozen=True, kw_only=True):
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
    """Alone; a dash where it wasn't projected."""
    share: str
    """That as a part of the step; empty where it can't be measured."""
    doubt: str
    """Between which limits; empty where it says no more."""
    waits: str
    idle: str
    """How long the device stands idle behind it."""
    circumstances: tuple[str, ...]
    """What is unusual of it: that it is intended, in the backward, how often where not once a step."""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """What a report comes to: what bounds the step, and what to do."""

    verdict: str
    """What the step is bound by, without a full stop."""
    summary: str
    """How many places wait, how long, and how much shorter the step would be without them."""
    nothing: str
    """Why removing syncs gains nothing; empty where it does, or where the verdict says it. Stands before the list."""
    remedies: tuple[ToldRemedy, ...]
    """What to change, the largest gain first."""
    then: str
    """What limits the step without its syncs; empty where removing them gains nothing. Stands behind the list."""

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do, in sentences."""
        return tuple(said for said in (self.nothing, *remedies.in_words(self.remedies), self.then) if said)


class Story(Conclusion, frozen=True, kw_only=True):
    """All that a report tells."""

    bound: Bound
    reason: str
    """The numbers that rests on."""
    lacking: tuple[str, ...]
    """What the trace lacks, and what is withheld for it."""
    findings: tuple[ToldFinding, ...]
    habits: tuple[ToldHabit, ...]
    ranked: tuple[ToldFinding | ToldHabit, ...]
    """Both in one list, the largest saving first."""
    ranking: str
    """What that list is ordered by."""
    to_do: str
    """The heading of what to change."""
    timed: bool
    """Whether anything was timed: not in a dry run."""
    costed: bool
    """Whether anything is said of what a finding costs: not of a dry run alone."""
    hidden: str
    """How many findings and habits an option hides; empty where none."""
    host_leads: bool
    """Whether where the host's time goes belongs on the first screen."""
    host_sentence: str
    """Where it goes; empty where nothing tells it."""
    host_tables: tuple[host.Table, ...]
    host_notes: tuple[str, ...]
    run_leads: bool
    """Whether the first screen says what the recorded steps stand for in the run."""
    run_sentence: str
    """Empty where capture didn't watch the run."""
    run: tuple[program_run.PhaseLine, ...]
    """What of the run isn't its steps."""
    races: tuple[Race, ...]
    """Of a dry run."""
    races_sentence: str
    phases: tuple[PhaseSummary, ...]
    """What a served step does, by batch."""
    steps_found: str
    warnings: tuple[str, ...]
    next: tuple[str, ...]
    """The command that fits this trace best, word for word."""

    @property
    def because(self) -> str:
        """The verdict's reason with what the trace lacks."""
        return sentences(self.reason, *self.lacking)

    @property
    def opening(self) -> str:
        """All that stands between the verdict and what to do."""
        host_says = self.host_sentence if self.host_leads else ""
        run_says = self.run_sentence if self.run_leads else ""
        return sentences(self.reason, run_says, host_says, *self.lacking, self.races_sentence, self.summary)


def conclusion_of(analysis: Analysis, shown: Shown) -> Conclusion:
    """What the report of any analysis comes to; of it that is shown which its own view lets through."""
    told, timeless = remedies.told(analysis), dry.is_dry(analysis)
    listed = {f.id for f in shown.findings} | {h.id for h in shown.habits}
    return Conclusion(
        verdict=dry.verdict(analysis) if timeless else analysis.step.bound.verdict.capitalize(),
        summary=dry.summary(analysis) if timeless else summary(analysis),
        nothing=_nothing(analysis, told),
        remedies=tuple(r for r in told if r.habit in listed or any(m.id in listed for m in r.members)),
        then=_then(analysis, told),
    )


def story_of(analysis: Analysis) -> Story:
    """The story of any analysis; what can't be told of it is empty."""
    shown = analysis.shown
    conclusion = conclusion_of(analysis, shown)
    numbers = {f.id: number for number, f in enumerate(analysis.findings)}
    findings = {f.id: _finding(numbers[f.id], f, analysis) for f in shown.findings}
    found = {habit.id: habit for habit in habits.told(analysis, replayed(analysis.step))}
    timeless = dry.is_dry(analysis)
    return Story(
        **asdict(conclusion),
        bound=analysis.step.bound,
        reason=dry.reason(analysis) if timeless else analysis.step.reason,
        lacking=() if timeless else tuple(lacking(analysis)),
        findings=tuple(findings.values()),
        habits=tuple(found.values()),
        ranked=tuple(findings.get(x.id) or found[x.id] for x in shown.ranked),
        ranking=dry.ranking(analysis) if timeless else RANKED,
        to_do=dry.title(analysis) if timeless else remedies.title(conclusion.remedies),
        timed=not timeless,
        costed=not timeless or analysis.likeness is not None,
        hidden=_hidden(shown.hidden),
        host_leads=host.leads(analysis),
        host_sentence=host.sentence(analysis),
        host_tables=tuple(host.tables(analysis.host_time)),
        host_notes=tuple(host.notes(analysis.host_time)),
        run_leads=program_run.leads(analysis),
        run_sentence=program_run.sentence(analysis),
        run=tuple(program_run.rows(analysis)),
        races=analysis.races,
        races_sentence=races.sentence(analysis),
        phases=tuple(phases_of(analysis.trace)),
        steps_found=dry.steps(analysis) if timeless else sentences(steps_found(analysis), _without_lines(analysis)),
        warnings=analysis.warnings,
        next=_next(analysis, conclusion.remedies),
    )


def _without_lines(analysis: Analysis) -> str:
    """Return how to get lines where no sync has one; empty where one has, or nothing waits."""
    if not analysis.findings or any(f.where.source for f in analysis.findings):
        return ""
    return "No source lines: syncscan profile records them, with_stack=True those of functions."


def _hidden(hidden: Sequence[Hidden]) -> str:
    """As in `12 findings and 1 habit are hidden by --select, 3 findings by --min-saves`."""
    if not hidden:
        return ""
    (first, *more) = [(_counted(h), h.option) for h in hidden]
    verb = "is" if hidden[0].findings + hidden[0].habits == 1 else "are"
    said = [f"{first[0]} {verb} hidden by {first[1]}", *(f"{count} by {option}" for count, option in more)]
    return f"{', '.join(said)}."


def _counted(hidden: Hidden) -> str:
    parts = [(hidden.findings, "finding"), (hidden.habits, "habit")]
    return " and ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in parts if count)


def _next(analysis: Analysis, told: Sequence[ToldRemedy]) -> tuple[str, ...]:
    """Several syncs: what they save together; one change: why, and what to write; else a look at the timeline."""
    trace = analysis.trace.info.path
    if not len(analysis.trace.device_rows):
        return "syncscan", "profile" if analysis.trace.info.capture.pretended else "dryrun", "train.py"
    if told and len(told[0].members) > 1 and trace != "-":
        rules = dict.fromkeys(analysis.findings[m.number].rule for m in told[0].members)
        return "syncscan", "whatif", trace, *(word for rule in rules for word in ("--remove", f"rule:{rule}"))
    if told:
        rule = next((h.rule for h in analysis.habits if h.id == told[0].habit), "")
        return "syncscan", "explain", rule or analysis.findings[told[0].members[0].number].rule
    return ("syncscan", "rules") if trace == "-" else ("syncscan", "report", trace, "-o", "report.html")


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


def _doubt(f: Finding, step_us: float) -> str:
    return spread(f.gain.range_us, step_us) if f.gain and measurable(f.gain.range_us[1], step_us) else ""


def _share(f: Finding, step_us: float) -> str:
    known = f.gain is not None and measurable(f.gain.recoverable_us, step_us)
    return percent(f.gain.recoverable_us, step_us) if f.gain and known else ""


def _figures(f: Finding, analysis: Analysis) -> dry.Figures:
    whole = replayed(analysis.step)
    return dry.Figures(
        saves=saving(f.gain.recoverable_us, whole) if f.gain else NOT_PROJECTED,
        share=_share(f, whole),
        doubt=_doubt(f, whole),
        waits=waited(f.wait_us, analysis.step),
        idle=waited(f.bubble_us, analysis.step),
    )


def _circumstances(f: Finding, analysis: Analysis) -> Iterator[str]:
    timeless = dry.is_dry(analysis)
    if f.diagnosis.intended and not timeless:
        yield "intended"
    if f.where.phase is Phase.BACKWARD:
        yield "backward"
    if timeless:
        yield from dry.circumstances(f, analysis)
    elif abs(f.per_step - 1) >= 0.005:
        yield times(f.per_step)


def _finding(number: int, f: Finding, analysis: Analysis) -> ToldFinding:
    costs = dry.figures(f, analysis) if dry.is_dry(analysis) else _figures(f, analysis)
    return ToldFinding(
        of=f,
        number=number,
        id=f.id,
        rule=f.rule,
        severity=f.severity,
        title=f.diagnosis.title,
        what=what(f),
        where=whereabouts(f),
        saves=costs.saves,
        share=costs.share,
        doubt=costs.doubt,
        waits=costs.waits,
        idle=costs.idle,
        circumstances=tuple(_circumstances(f, analysis)),
    )
