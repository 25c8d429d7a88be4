"""Render a Diff for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.model.diff import Diff, SiteStatus
from syncscan.report.diff_story import TITLES, ChangeText, DiffStory, story_of
from syncscan.report.printable import printable
from syncscan.report.terminal import written

_COLORS = {
    SiteStatus.NEW: "bold red",
    SiteStatus.CHANGED: "yellow",
    SiteStatus.GONE: "green",
    SiteStatus.OCCASIONAL: "dim",
}
SHOWN = 20
"""Places shown per kind of change; JSON has them all."""


def render(diff: Diff, width: int = 100, color: bool = False) -> str:
    """Return the diff as text.

    Args:
        width: the width of the terminal, in characters.
        color: whether to write colors.
    """
    return written(_parts(story_of(diff)), width, color)


def _parts(story: DiffStory) -> Iterator[RenderableType]:
    yield Text(printable(f"before: {story.before}"), "dim")
    yield Text(printable(f"after:  {story.after}"), "dim")
    yield Text(f"{story.verdict}.", "bold")
    for sentence in story.moved:
        yield Text.assemble(("→ ", "bold green"), printable(f"{sentence}."))
    for sentence in (story.step, story.held_up, story.promise, story.habits):
        if sentence:
            yield Text(printable(sentence))
    for kind, changes in story.changes.items():
        yield Text(f"{TITLES[kind]}:", "bold")
        yield _table(changes[:SHOWN], _COLORS[kind])
        if len(changes) > SHOWN:
            yield Text(f" … and {len(changes) - SHOWN} more in --format json.")
    if story.same:
        yield Text(f"{story.same}.", "dim")
    for note in story.notes:
        yield Text(f"note: {printable(note)}", "dim")


def _table(changes: Sequence[ChangeText], color: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for change in changes:
        grid.add_row(Text(f" {change.sign}", color), Text(printable(change.what, 160), "bold"))
        for line in (change.where, change.numbers):
            if line:
                grid.add_row("", Text(printable(line, 240)))
    return grid
