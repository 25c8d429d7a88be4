"""Render all details of each finding and habit for a terminal: numbers, why, fix, flagged lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from syncscan.model.finding import Excerpt, Finding
from syncscan.model.step import StepSummary
from syncscan.report import habits, phrases, source
from syncscan.report.habits import HabitText
from syncscan.report.printable import printable
from syncscan.report.story import Story
from syncscan.report.units import times


def details(story: Story, step: StepSummary) -> Iterator[RenderableType]:
    """Yield a block for each finding and habit, in the order of the table."""
    yield Text("")
    for entry in story.ranked:
        if isinstance(entry, HabitText):
            yield _details(entry.name, _of_habit(entry), None)
        else:
            yield _details(entry.title, _of_finding(entry.of, step), entry.of.excerpt)


def _details(title: str, facts: Sequence[tuple[str, str]], excerpt: Excerpt | None) -> Padding:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        if value:
            grid.add_row(name, Text(printable(value)))
    return Padding(
        Group(Text(printable(title, 240), "bold"), grid, *([flagged_lines(excerpt)] if excerpt else [])), (0, 0, 1, 1)
    )


def _of_finding(f: Finding, step: StepSummary) -> list[tuple[str, str]]:
    d = f.diagnosis
    return [
        ("id", f.id),
        ("rule", f"{d.rule} ({d.cause.value}), confidence {f.confidence.value}, {f.where.owner}'s code"),
        ("line", _exact_line(f)),
        ("waits in", _library_line(f)),
        ("module", " > ".join(f.where.module)),
        ("scope", " > ".join(f.where.scope)),
        ("chain", " > ".join(phrases.chain(f))),
        ("thread", f"{f.where.thread}, {phrases.phase_of(f.where)}{times(f.per_step)}"),
        *phrases.facts(f, step),
    ]


def _of_habit(habit: HabitText) -> list[tuple[str, str]]:
    return [
        ("id", habit.id),
        ("rule", f"{habit.rule}, confidence {habit.confidence}"),
        ("saves", f"{habit.saves}, {habit.doubt}" if habit.doubt else habit.saves),
        *habits.facts(habit),
    ]


def flagged_lines(excerpt: Excerpt) -> RenderableType:
    """Return numbered source lines with the flagged ones marked; each is cut at the terminal's edge."""
    shown = source.lines(excerpt)
    texts = [
        Text(line, "bold" if x.flagged else "dim", no_wrap=True, overflow="ellipsis")
        for line, x in zip(source.numbered(excerpt), shown, strict=True)
    ]
    note = [Text(source.NEWER, "dim italic")] if excerpt.newer else []
    return Padding(Group(*texts, *note), (0, 0, 0, 1))


def _exact_line(f: Finding) -> str:
    source = f.where.source
    if not source:
        return ""
    if source.exact:
        return f"{source.file}:{source.line} in {source.function}"
    if source.candidates:
        lines = ", ".join(map(str, source.candidates))
        return f"{source.file}:{lines} in {source.function} (candidates: calls in it that match this op)"
    return f"in {source.function}, defined at {source.file}:{source.line} (the trace doesn't record the exact line)"


def _library_line(f: Finding) -> str:
    """Return the library's line inside the user's that waits, with its function; empty without one."""
    inner = f.where.framework
    return f"{inner.file}:{inner.line} {inner.function}" if inner else ""
