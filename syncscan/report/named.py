"""Resolve a user's name for a part of a report (its number, id or id prefix) to findings or a habit."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.habit import Habit
from syncscan.report.phrases import real, whereabouts
from syncscan.report.remedies import describe

SHOWN = 8
"""Possible meanings of a name that an error lists."""

Part = Finding | Habit


def named(analysis: Analysis, name: str) -> tuple[Part, ...]:
    """Return the findings or habit that a user names; several findings only if they share one number.

    A name is a number of the list of what to change, from 1, or the id of a finding or a habit, or the id's beginning,
    which a rule's name is too.
    """
    if name.isdecimal():
        return _number_parts(analysis, int(name))
    wanted = name.strip().lower().replace("_", "-")
    parts: tuple[Part, ...] = (*analysis.findings, *analysis.habits)
    for matches in (
        [p for p in parts if p.id == wanted],
        [p for p in parts if p.rule == wanted],
        [p for p in parts if wanted and p.id.startswith(wanted)],
    ):
        if len(matches) == 1:
            return (matches[0],)
        if matches:
            listed = "; ".join(map(_describe, matches[:SHOWN])) + (" …" if len(matches) > SHOWN else "")
            raise UsageError(f"{len(matches)} things in {_path(analysis)} are called '{name}'.", f"It can be {listed}.")
    raise UsageError(f"Nothing in {_path(analysis)} is called '{name}'.", _near(analysis, wanted))


def _number_parts(analysis: Analysis, number: int) -> tuple[Part, ...]:
    entries = _entries(analysis)
    if not 1 <= number <= len(entries):
        hint = f"Its last number is {len(entries)}." if entries else "It lists nothing."
        raise UsageError(f"There is no number {number} in the report of {_path(analysis)}.", hint)
    return tuple(entries[number - 1])


def _entries(analysis: Analysis) -> list[Sequence[Part]]:
    """Return the findings or habit under each number of the list of changes; without one, each finding."""
    if entries := describe(analysis):
        habits = {habit.id: habit for habit in analysis.habits}
        return [[habits[entry.habit]] if entry.habit else entry.members for entry in entries]
    return [[finding] for finding in real(analysis.shown.findings)]


def _near(analysis: Analysis, wanted: str) -> str:
    ids = [*(f.id for f in analysis.findings), *(h.id for h in analysis.habits)]
    if not ids:
        return "It has neither findings nor habits."
    near = difflib.get_close_matches(wanted, ids, 3, 0.4)
    return f"Did you mean {' or '.join(near)}?" if near else f"Ids look like {', '.join(ids[:3])}; -v shows them."


def _describe(part: Part) -> str:
    where = whereabouts(part) if isinstance(part, Finding) else " › ".join(part.scope[-2:])
    return f"{part.id} ({where})" if where else part.id


def _path(analysis: Analysis) -> str:
    return analysis.trace.info.path
