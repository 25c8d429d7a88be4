"""Find habits that were added or removed between two states of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscan.gate.sites import unnumbered
from syncscan.model.analysis import Analysis
from syncscan.model.diff import HabitChange, SiteStatus
from syncscan.model.finding import Severity
from syncscan.model.habit import Habit

_MATTERS = (Severity.HIGH, Severity.MEDIUM)

_Key = tuple[str, str, tuple[str, ...]]


def habit_changes(before: Sequence[Analysis], after: Sequence[Analysis]) -> tuple[HabitChange, ...]:
    """Return the habits that matter in every recording of one state and are in none of the other.

    Habits of one rule and scope are one, but for those of different work that only samples show.

    Args:
        before: recordings of the earlier state, one or more.
    """
    removed = (HabitChange(SiteStatus.GONE, habit) for habit in _only(before, after))
    new = (HabitChange(SiteStatus.NEW, habit) for habit in _only(after, before))
    return (*removed, *new)


def _only(these: Sequence[Analysis], those: Sequence[Analysis]) -> Iterator[Habit]:
    elsewhere = {_key(habit) for analysis in those for habit in analysis.habits}
    everywhere = set.intersection(*({_key(h) for h in a.habits if h.severity in _MATTERS} for a in these))
    yield from ({_key(h): h for h in these[0].habits if _key(h) in everywhere - elsewhere}).values()


def _key(habit: Habit) -> _Key:
    return habit.rule, habit.sampled.activity if habit.sampled else "", tuple(map(unnumbered, habit.scope))
