"""Derive an analysis's story: verdict, what to change, findings, habits; all renderers share it.

Names are as recorded: each renderer escapes them.
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
from syncscan.report import (
    compile_breaks,
    dry_run,
    habits,
    host,
    kernels,
    program_run,
    races,
    remedies,
    states,
    timed_steps,
)
from syncscan.report.habits import HabitText
from syncscan.report.phrases import (
    lacking,
    measurable,
    once_compiled,
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
from syncscan.report.remedies import RemedyText
from syncscan.report.units import percent, times

NOT_PROJECTED = "–"
LITTLE = 0.02
"""Part of the step below which a habit's gain isn't what to look at next."""
RANKED = "Sorted by individual savings; upper bounds and unprojected items come last."


class FindingText(msgspec.Struct, frozen=True, kw_only=True):
    """A finding's summary in words; `of` is the finding itself."""

    of: Finding
    number: int
    """Index of the finding."""
    id: str
    rule: str
    severity: Severity
    title: str
    what: str
    """Op and innermost scope."""
    where: str
    """Line, scopes and op."""
    saves: str
    """Saving alone; a dash without a projection."""
    share: str
    """That saving as a share of the step; empty where it can't be measured."""
    doubt: str
    """Range of the saving; empty where it adds nothing."""
    waits: str
    idle: str
    """How long the device is idle after it."""
    once_compiled: str
    """The saving once the network is compiled, where that is more; else empty."""
    circumstances: tuple[str, ...]
    """Special circumstances: intended, in the backward pass, frequency unless once per step."""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """A report's conclusion: what bounds the step, and what to do."""

    verdict: str
    """The step's bound in words, without a full stop."""
    summary: str
    """How many places wait, how long, and how much shorter the step would be without them."""
    nothing: str
    """Why removing syncs gains nothing, shown before the list; empty where it gains, or where the verdict says so."""
    remedies: tuple[RemedyText, ...]
    then: str
    """The step's limit without its syncs, shown after the list; empty where removing them gains nothing."""
    stop: str
    """The point in the list after which changes aren't worth making; empty where all are, or that is unknown."""

    @property
    def advice(self) -> tuple[str, ...]:
        parts = (self.nothing, *remedies.in_words(self.remedies), self.then, self.stop)
        return tuple(sentence for sentence in parts if sentence)


class Story(Conclusion, frozen=True, kw_only=True):
    """The whole content of a report."""

    bound: Bound
    reason: str
    """The numbers behind the verdict."""
    lacking: tuple[str, ...]
    """Sentences on missing data, and on what is withheld for it."""
    findings: tuple[FindingText, ...]
    habits: tuple[HabitText, ...]
    ranked: tuple[FindingText | HabitText, ...]
    """Findings and habits in one list, largest saving first."""
    ranking: str
    """The sort order of that list."""
    to_do: str
    timed: bool
    """Whether anything was timed: false for a dry run."""
    costed: bool
    """Whether findings have costs: false for a dry run without a recording."""
    hidden: str
    """How many findings and habits an option hides; empty for none."""
    host_leads: bool
    """Whether the host's time belongs on the first screen."""
    host_sentence: str
    """Where the host's time goes; empty where unknown."""
    host_tables: tuple[host.TextTable, ...]
    host_notes: tuple[str, ...]
    compiled: str
    """Count of dynamo's graphs, breaks and recompiles, in a sentence; empty unless dynamo was asked."""
    compile_table: host.TextTable | None
    """Where it broke off, and which waits are there."""
    compile_notes: tuple[str, ...]
    kernels_lead: bool
    """Whether the device limits the step, so that its kernels are what to look at next."""
    kernels: str
    """Sentence on what is left to gain on the host; empty unless the device is the limit."""
    kernel_table: host.TextTable | None
    """Those that take most of the device's time."""
    run_leads: bool
    """Whether the first screen says what the recorded steps represent in the run."""
    run_sentence: str
    """How much of the run the recorded steps represent; empty if capture didn't watch it."""
    run: tuple[program_run.PhaseRow, ...]
    """Parts of the run outside of its steps."""
    races: tuple[Race, ...]
    races_sentence: str
    """How many races there are; empty without one."""
    phases: tuple[PhaseSummary, ...]
    """Work of a served step, by batch."""
    steps_found: str
    warnings: tuple[str, ...]
    next: tuple[str, ...]
    """The best next command, as arguments."""

    @property
    def because(self) -> str:
        """The verdict's reason, and sentences on missing data."""
        return sentences(self.reason, *self.lacking)

    @property
    def opening(self) -> str:
        """The sentences between the verdict and what to do."""
        host_says = self.host_sentence if self.host_leads else ""
        run_says = self.run_sentence if self.run_leads else ""
        return sentences(self.reason, run_says, host_says, *self.lacking, self.races_sentence, self.summary)


def conclusion_of(analysis: Analysis, shown: Shown) -> Conclusion:
    """Return the conclusion of an analysis; the list of changes keeps what its view shows."""
    entries, timeless = remedies.describe(analysis), dry_run.is_dry(analysis)
    listed = {f.id for f in shown.findings} | {h.id for h in shown.habits}
    return Conclusion(
        verdict=dry_run.verdict(analysis) if timeless else analysis.step.bound.verdict.capitalize(),
        summary=dry_run.summary(analysis) if timeless else _summary(analysis, entries),
        nothing=_nothing(analysis, entries),
        remedies=tuple(r for r in entries if r.habit in listed or any(m.id in listed for m in r.members)),
        then=_then(analysis, entries),
        stop="" if timeless else remedies.stop(analysis),
    )


_EXAMPLE = ("train.py",)
"""The program in commands for a reader whose program isn't known."""


def story_of(analysis: Analysis, program: Sequence[str] | None = None) -> Story:
    """Return the story of an analysis; fields that can't be determined are empty."""
    shown = analysis.shown
    conclusion = conclusion_of(analysis, shown)
    numbers = {f.id: number for number, f in enumerate(analysis.findings)}
    findings = {f.id: _finding(numbers[f.id], f, analysis) for f in shown.findings}
    habit_texts = {habit.id: habit for habit in habits.describe(analysis, replayed(analysis.step))}
    timeless = dry_run.is_dry(analysis)
    return Story(
        **asdict(conclusion),
        bound=analysis.step.bound,
        reason=dry_run.reason(analysis) if timeless else analysis.step.reason,
        lacking=() if timeless else tuple(filter(None, (timed_steps.sentence(analysis), *lacking(analysis)))),
        findings=tuple(findings.values()),
        habits=tuple(habit_texts.values()),
        ranked=tuple(findings.get(x.id) or habit_texts[x.id] for x in shown.ranked),
        ranking=dry_run.ranking(analysis) if timeless else RANKED,
        to_do=dry_run.title(analysis) if timeless else remedies.title(conclusion.remedies),
        timed=not timeless,
        costed=not timeless or analysis.likeness is not None,
        hidden=_hidden(shown.hidden),
        host_leads=host.leads(analysis),
        host_sentence=host.sentence(analysis),
        host_tables=tuple(host.tables(analysis.host_time)),
        host_notes=tuple(host.notes(analysis.host_time)),
        compiled=compile_breaks.sentence(analysis),
        compile_table=compile_breaks.table(analysis),
        compile_notes=compile_breaks.notes(analysis),
        kernels_lead=kernels.leads(analysis),
        kernels=kernels.sentence(analysis),
        kernel_table=kernels.table(analysis),
        run_leads=program_run.leads(analysis),
        run_sentence=program_run.sentence(analysis, program or _EXAMPLE),
        run=tuple(program_run.rows(analysis)),
        races=analysis.races,
        races_sentence=races.sentence(analysis),
        phases=tuple(phases_of(analysis.trace)),
        steps_found=dry_run.steps(analysis) if timeless else sentences(steps_found(analysis), _without_lines(analysis)),
        warnings=analysis.warnings,
        next=_next(analysis, conclusion.remedies, program),
    )


def _summary(analysis: Analysis, entries: Sequence[RemedyText]) -> str:
    """Return how long places wait, what they hold back where that leads the list, and what is in a compile's way."""
    pair = entries[0].pair if entries else ""
    obstacles = states.in_the_way(analysis, removed=bool(pair))
    if not pair:
        return sentences(summary(analysis), obstacles)
    several = len([f for f in analysis.findings if not f.intended]) > len(entries[0].members)
    return sentences(pair, summary(analysis) if several else "", obstacles)


def _without_lines(analysis: Analysis) -> str:
    """Return how to get lines where no sync has one; empty where one has, or nothing waits."""
    if not analysis.findings or any(f.source for f in analysis.findings):
        return ""
    return "No source lines: record with syncscan profile, or with_stack=True for functions."


def _hidden(hidden: Sequence[Hidden]) -> str:
    """Return what is hidden, e.g. `12 findings and 1 habit are hidden by --select, 3 findings by --min-saves`."""
    if not hidden:
        return ""
    (first, *more) = [(_count_text(h), h.by) for h in hidden]
    verb = "is" if hidden[0].findings + hidden[0].habits == 1 else "are"
    listed = [f"{first[0]} {verb} hidden by {first[1]}", *(f"{count} by {option}" for count, option in more)]
    return f"{', '.join(listed)}."


def _count_text(hidden: Hidden) -> str:
    parts = [(hidden.findings, "finding"), (hidden.habits, "habit")]
    return " and ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in parts if count)


def _next(analysis: Analysis, entries: Sequence[RemedyText], program: Sequence[str] | None) -> tuple[str, ...]:
    """Return the next command: `whatif` for several syncs or a compile, `explain` for one change, else `report`.

    After a dry run it is `fix`, if it found anything in a known program, and `profile` if it found nothing.
    """
    trace, timeless = analysis.trace.info.path, dry_run.is_dry(analysis)
    if timeless and entries and program:
        return "syncscan", "fix", *program
    if timeless and not entries:
        runs_function = program and ".py:" in program[0]  # which only a dry run and `fix` call
        return "syncscan", "profile", *(program if program and not runs_function else _EXAMPLE)
    if not len(analysis.trace.device_rows):
        return "syncscan", "dryrun", *(program or _EXAMPLE)
    if entries and _is_little(analysis):
        entries = ()
    if entries and (len(entries[0].members) > 1 or entries[0].pair) and trace != "-":
        rules = dict.fromkeys(analysis.findings[m.number].rule for m in entries[0].members)
        removed = (word for rule in rules for word in ("--remove", f"rule:{rule}"))
        launches = ("--launches", entries[0].launches) if entries[0].pair else ()
        return "syncscan", "whatif", trace, *removed, *launches
    if entries:
        rule = next((h.rule for h in analysis.habits if h.id == entries[0].habit), "")
        return "syncscan", "explain", rule or analysis.findings[entries[0].members[0].number].rule
    return ("syncscan", "explain") if trace == "-" else ("syncscan", "report", trace, "-o", "report.html")


def _is_little(analysis: Analysis) -> bool:
    """Return whether the first change of the list is no sync and hardly worth a command of its own."""
    first = next(iter(analysis.remedies), None)
    return first is not None and bool(first.habit) and first.alone_us < LITTLE * replayed(analysis.step)


def _nothing(analysis: Analysis, entries: tuple[RemedyText, ...]) -> str:
    """Return why removing syncs gains nothing, unless the list holds a sync."""
    outlook = analysis.step.outlook
    if outlook is None or outlook.gains or any(r.members for r in entries):
        return ""
    return outlook.beside if entries else outlook.sentence


def _then(analysis: Analysis, entries: tuple[RemedyText, ...]) -> str:
    outlook = analysis.step.outlook
    if outlook is None or not outlook.gains:
        return ""
    return outlook.beside if any(r.habit for r in entries) else outlook.sentence


def _doubt(f: Finding, step_us: float) -> str:
    limits = f.recoverable_range_us
    return spread(limits, step_us) if limits and measurable(limits[1], step_us) else ""


def _share(f: Finding, step_us: float) -> str:
    us = f.recoverable_us
    return percent(us, step_us) if us is not None and measurable(us, step_us) else ""


def _figures(f: Finding, analysis: Analysis) -> dry_run.Figures:
    us, replayed_us = f.recoverable_us, replayed(analysis.step)
    return dry_run.Figures(
        saves=NOT_PROJECTED if us is None else saving(us, replayed_us, f.recoverable_range_us),
        share=_share(f, replayed_us),
        doubt=_doubt(f, replayed_us),
        waits=waited(f.wait_us, analysis.step),
        idle=waited(f.bubble_us, analysis.step),
    )


def _circumstances(f: Finding, analysis: Analysis) -> Iterator[str]:
    timeless = dry_run.is_dry(analysis)
    if f.intended and not timeless:
        yield "intended"
    if f.phase is Phase.BACKWARD:
        yield "backward"
    if timeless:
        yield from dry_run.circumstances(f, analysis)
    elif abs(f.per_step - 1) >= 0.005:
        yield times(f.per_step)


def _finding(number: int, f: Finding, analysis: Analysis) -> FindingText:
    costs = dry_run.figures(f, analysis) if dry_run.is_dry(analysis) else _figures(f, analysis)
    return FindingText(
        of=f,
        number=number,
        id=f.id,
        rule=f.rule,
        severity=f.severity,
        title=f.title,
        what=what(f),
        where=whereabouts(f),
        saves=costs.saves,
        share=costs.share,
        doubt=costs.doubt,
        waits=costs.waits,
        idle=costs.idle,
        once_compiled=once_compiled(f, analysis.step),
        circumstances=tuple(_circumstances(f, analysis)),
    )
