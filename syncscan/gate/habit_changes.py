"""From the analyses of two states of a program to the habits that came or went between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscan.gate.sites import unnumbered
from syncscan.model.analysis import Analysis
from syncscan.model.diff import Change, HabitChange
from syncscan.model.finding import Severity
from syncscan.model.habit import Habit

_MATTERS = (Severity.HIGH, Severity.MEDIUM)

_Key = tuple[str, tuple[str, ...]]


def habit_changes(before: Sequence[Analysis], after: Sequence[Analysis]) -> tuple[HabitChange, ...]:
    """Habits by rule and scope: those that matter in every recording of one state, and are in none of the other.

    Args:
        before: recordings of the earlier state, one or more.
        after: of the later.
    """
    gone = (HabitChange(Change.GONE, habit) for habit in _only(before, after))
    new = (HabitChange(Change.NEW, habit) for habit in _only(after, before))
    return (*gone, *new)


def _only(these: Sequence[Analysis], those: Sequence[Analysis]) -> Iterator[Habit]:
    others = {_key(habit) for analysis in those for habit in analysis.habits}
    everywhere = set.intersection(*({_key(h) for h in a.habits if h.severity in _MATTERS} for a in these))
    yield from ({_key(h): h for h in these[0].habits if _key(h) in everywhere - others}).values()


def _key(habit: Habit) -> _Key:
    return habit.rule, tuple(map(unnumbered, habit.scope))
