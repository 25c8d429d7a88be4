"""From what a user calls a part of a report (its number, its id, the beginning of that) to findings or a habit."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.habit import Habit
from syncscan.report.phrases import whereabouts
from syncscan.report.remedies import ToldRemedy
from syncscan.report.story import Story, story_of

SHOWN = 8
"""How many of those that a name can mean an error lists."""

Part = Finding | Habit


def named(analysis: Analysis, name: str) -> tuple[Part, ...]:
    """What the user means: several findings only where they stand under one number, as syncs to remove together.

    Args:
        analysis: whose report the user has.
        name: a number of its list of what to change, from 1; an id of a finding or a habit; the id's beginning, which a
            rule's name is too.

    Raises:
        UsageError: nothing, or more than one thing, is called that; the message lists those that may be meant.
    """
    if name.isdecimal():
        return _numbered(analysis, int(name))
    wanted = name.strip().lower().replace("_", "-")
    parts: tuple[Part, ...] = (*analysis.findings, *analysis.habits)
    for found in (
        [p for p in parts if p.id == wanted],
        [p for p in parts if p.rule == wanted],
        [p for p in parts if wanted and p.id.startswith(wanted)],
    ):
        if len(found) == 1:
            return (found[0],)
        if found:
            listed = "; ".join(map(_told, found[:SHOWN])) + (" …" if len(found) > SHOWN else "")
            raise UsageError(f"{len(found)} things in {_path(analysis)} are called '{name}'.", f"It can be {listed}.")
    raise UsageError(f"Nothing in {_path(analysis)} is called '{name}'.", _near(analysis, wanted))


def _numbered(analysis: Analysis, number: int) -> tuple[Part, ...]:
    entries = _entries(analysis, story_of(analysis))
    if not 1 <= number <= len(entries):
        there = f"Its list goes from 1 to {len(entries)}." if entries else "It has nothing to list."
        raise UsageError(f"There is no number {number} in the report of {_path(analysis)}.", there)
    return tuple(entries[number - 1])


def _entries(analysis: Analysis, story: Story) -> list[Sequence[Part]]:
    """What stands under each number: of what to change; where nothing is worth it, of the findings."""
    if story.remedies:
        return [_members(analysis, remedy) for remedy in story.remedies]
    return [[told.of] for told in story.findings if told.severity is not Severity.INFO]


def _members(analysis: Analysis, remedy: ToldRemedy) -> Sequence[Part]:
    if remedy.habit:
        return [habit for habit in analysis.habits if habit.id == remedy.habit]
    return [analysis.findings[member.number] for member in remedy.members]


def _near(analysis: Analysis, wanted: str) -> str:
    ids = [*(f.id for f in analysis.findings), *(h.id for h in analysis.habits)]
    if not ids:
        return "It has neither findings nor habits."
    near = difflib.get_close_matches(wanted, ids, 3, 0.4)
    return f"Did you mean {' or '.join(near)}?" if near else f"Its ids are like {', '.join(ids[:3])}; -v shows them."


def _told(part: Part) -> str:
    where = whereabouts(part) if isinstance(part, Finding) else " › ".join(part.scope[-2:])
    return f"{part.id} ({where})" if where else part.id


def _path(analysis: Analysis) -> str:
    return analysis.trace.info.path
