"""Word the findings and habits of an analysis, and what their list rests on; every report shares these words.

Names are as recorded: each renderer escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Phase
from syncscan.model.habit import Basis, Habit, Split
from syncscan.report import dry_run, phrases, timed_steps
from syncscan.report.phrases import figure, measurable, replayed, saving, sentences, spread, waited, whereabouts
from syncscan.report.units import percent, times

NOT_PROJECTED = "–"
RANKED = "Sorted by individual savings; upper bounds and unprojected items come last."
SHOWN_PARTS = 4
"""Things between launches that a line names."""


class FindingText(msgspec.Struct, frozen=True, kw_only=True):
    """A finding's summary in words; `of` is the finding itself."""

    of: Finding
    number: int
    """Index of the finding."""
    where: str
    """Line, scopes and op."""
    saves: str
    """Saving alone, of a job's finding on all its ranks; a dash without a projection."""
    share: str
    """That saving as a share of the step; empty where it can't be measured."""
    doubt: str
    """Range of the saving; empty where it adds nothing."""
    waits: str
    idle: str
    """How long the device is idle after it."""
    circumstances: tuple[str, ...] = ()
    """Special circumstances: intended, in the backward pass, frequency unless once per step."""
    on: str = ""
    """Ranks of a job in words, e.g. `only on rank 0`."""
    wrong: str = ""
    """The claim of a single rank's trace; empty where that lies in the range of the job's gain."""


class HabitText(msgspec.Struct, frozen=True, kw_only=True):
    """A habit's gain in words; `of` is the habit itself."""

    of: Habit
    saves: str
    """Gain in words, e.g. `2.55 ms (57%)`, or that the habit distorts the measurement."""
    doubt: str
    """Range of the gain; empty where there is no doubt."""

    @property
    def where(self) -> str:
        """Innermost scope; empty without one."""
        return "".join(self.of.scope[-1:])


def ranked(analysis: Analysis) -> list[FindingText | HabitText]:
    """Return findings and habits in one list, largest saving first."""
    findings = {text.of.id: text for text in finding_texts(analysis)}
    step_us = replayed(analysis.step)
    return [findings[x.id] if isinstance(x, Finding) else habit_text(x, step_us) for x in analysis.shown.ranked]


def ranking(analysis: Analysis) -> str:
    """Return the sort order of that list."""
    return dry_run.RANKING if dry_run.is_dry(analysis) else RANKED


def is_costed(analysis: Analysis) -> bool:
    """Return whether findings have costs; those of a dry run have none."""
    return not dry_run.is_dry(analysis)


def lacking(analysis: Analysis) -> tuple[str, ...]:
    """Return sentences on missing data, and on what is withheld for it."""
    if dry_run.is_dry(analysis):
        return ()
    return tuple(filter(None, (timed_steps.sentence(analysis), *phrases.lacking(analysis))))


def steps_found(analysis: Analysis) -> str:
    """Return how the steps were found, and how to get lines where no sync has one."""
    if dry_run.is_dry(analysis):
        return dry_run.steps(analysis)
    bare = analysis.findings and not any(f.source for f in analysis.findings)
    how = "No source lines: record with syncscan profile, or with_stack=True for functions." if bare else ""
    return sentences(phrases.steps_found(analysis), how)


# findings


def finding_texts(analysis: Analysis) -> tuple[FindingText, ...]:
    """Return the findings that the view shows, in order."""
    numbers = {f.id: number for number, f in enumerate(analysis.findings)}
    return tuple(_finding(numbers[f.id], f, analysis) for f in analysis.shown.findings)


def _finding(number: int, f: Finding, analysis: Analysis) -> FindingText:
    saves, share, doubt, waits, idle = costs_of(f, replayed(analysis.step))
    return FindingText(
        of=f,
        number=number,
        where=whereabouts(f),
        saves=saves,
        share=share,
        doubt=doubt,
        waits=waits,
        idle=idle,
        circumstances=tuple(_circumstances(f, analysis)),
    )


def costs_of(f: Finding, step_us: float) -> tuple[str, str, str, str, str]:
    """Return what a finding saves, as a time, as a share and as a range, how long it waits, and the idle time after."""
    us, limits = f.recoverable_us, f.recoverable_range_us
    return (
        NOT_PROJECTED if us is None else saving(us, step_us, limits),
        percent(us, step_us) if us is not None and measurable(us, step_us) else "",
        spread(limits, step_us) if limits and measurable(limits[1], step_us) else "",
        waited(f.wait_us),
        waited(f.bubble_us),
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


# habits


def habit_texts(analysis: Analysis) -> tuple[HabitText, ...]:
    """Return the habits that the view shows, in order."""
    return tuple(habit_text(habit, replayed(analysis.step)) for habit in analysis.shown.habits)


def habit_text(habit: Habit, step_us: float) -> HabitText:
    gain_us, range_us, basis = habit.recoverable_us, habit.recoverable_range_us, habit.basis
    if gain_us is None or range_us is None or basis is None:
        return HabitText(of=habit, saves="distorts the measurement", doubt="")
    doubt = "not projected" if basis is Basis.UPPER_BOUND else spread(range_us, step_us)
    return HabitText(of=habit, saves=figure(gain_us, basis, step_us, range_us), doubt=doubt)


def habit_facts(habit: Habit) -> list[tuple[str, str]]:
    return [
        ("rule", f"{habit.rule}, confidence {habit.confidence.value}"),
        ("evidence", "; ".join(habit.evidence)),
        *graphs(habit),
        ("why", habit.why),
        ("fix", habit.fix),
        ("fine", habit.when_fine),
    ]


def graphs(habit: Habit) -> Iterator[tuple[str, str]]:
    """Yield what separates the CUDA graphs that can hold a step's launches, with its label."""
    if habit.splits:
        more = len(habit.splits) - SHOWN_PARTS
        parts = [*map(_split, habit.splits[:SHOWN_PARTS]), *([f"and {more} more"] if more > 0 else [])]
        yield "prevents a single graph", "; ".join(parts)


def _split(split: Split) -> str:
    at = f" ({PurePath(split.source.file).name}:{split.source.line})" if split.source else ""
    often = f", {split.per_step:.3g} per step" if round(split.per_step, 2) != 1 else ""
    return f"{split.what}{at}{often}"
