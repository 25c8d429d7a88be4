"""Word what stands behind an analysis's first screen: findings, habits, tables; all renderers share it.

Names are as recorded: each renderer escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from syncscan.facts.period import PhaseSummary, phases_of
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Phase
from syncscan.model.race import Race
from syncscan.report import (
    compile_breaks,
    dry_run,
    habits,
    host,
    kernels,
    program_run,
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
    waited,
    what,
    whereabouts,
)
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


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """The whole content of a report."""

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
    timed: bool
    """Whether anything was timed: false for a dry run."""
    costed: bool
    """Whether findings have costs: false for a dry run without a recording."""
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
    run_sentence: str
    """How much of the run the recorded steps represent; empty if capture didn't watch it."""
    run: tuple[program_run.PhaseRow, ...]
    """Parts of the run outside of its steps."""
    races: tuple[Race, ...]
    phases: tuple[PhaseSummary, ...]
    """Work of a served step, by batch."""
    steps_found: str
    warnings: tuple[str, ...]


def story_of(analysis: Analysis) -> Story:
    """Return the story of an analysis; fields that can't be determined are empty."""
    shown = analysis.shown
    numbers = {f.id: number for number, f in enumerate(analysis.findings)}
    findings = {f.id: _finding(numbers[f.id], f, analysis) for f in shown.findings}
    habit_texts = {habit.id: habit for habit in habits.describe(analysis, replayed(analysis.step))}
    timeless = dry_run.is_dry(analysis)
    return Story(
        reason=dry_run.reason(analysis) if timeless else analysis.step.reason,
        lacking=() if timeless else tuple(filter(None, (timed_steps.sentence(analysis), *lacking(analysis)))),
        findings=tuple(findings.values()),
        habits=tuple(habit_texts.values()),
        ranked=tuple(findings.get(x.id) or habit_texts[x.id] for x in shown.ranked),
        ranking=dry_run.ranking(analysis) if timeless else RANKED,
        timed=not timeless,
        costed=not timeless or analysis.likeness is not None,
        host_sentence=host.sentence(analysis),
        host_tables=tuple(host.tables(analysis.host_time)),
        host_notes=tuple(filter(None, (*host.notes(analysis.host_time), host.ahead(analysis.step)))),
        compiled=compile_breaks.sentence(analysis),
        compile_table=compile_breaks.table(analysis),
        compile_notes=compile_breaks.notes(analysis),
        kernels_lead=kernels.leads(analysis),
        kernels=kernels.sentence(analysis),
        kernel_table=kernels.table(analysis),
        run_sentence=program_run.sentence(analysis),
        run=tuple(program_run.rows(analysis)),
        races=analysis.races,
        phases=tuple(phases_of(analysis.trace)),
        steps_found=dry_run.steps(analysis) if timeless else sentences(steps_found(analysis), _without_lines(analysis)),
        warnings=analysis.warnings,
    )


def _without_lines(analysis: Analysis) -> str:
    """Return how to get lines where no sync has one; empty where one has, or nothing waits."""
    if not analysis.findings or any(f.source for f in analysis.findings):
        return ""
    return "No source lines: record with syncscan profile, or with_stack=True for functions."


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
