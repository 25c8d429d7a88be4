"""Render the changes between two states, of traces or of jobs, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.model.diff import SiteStatus
from syncscan.report.diff_story import ChangeText
from syncscan.report.printable import printable

_COLORS = {
    SiteStatus.NEW: "bold red",
    SiteStatus.CHANGED: "yellow",
    SiteStatus.GONE: "green",
    SiteStatus.OCCASIONAL: "dim",
}
SHOWN = 20
"""Places shown per kind of change; JSON has them all."""


def change_lines(
    changes: Mapping[SiteStatus, Sequence[ChangeText]], titles: Mapping[SiteStatus, str], longest: int
) -> Iterator[RenderableType]:
    """Yield each kind of change as a title and a table.

    Args:
        changes: the changes by kind, in their order.
        longest: characters of what a change is.
    """
    for kind, entries in changes.items():
        yield Text(f"{titles[kind]}:", "bold")
        yield _table(entries[:SHOWN], _COLORS[kind], longest)
        if len(entries) > SHOWN:
            yield Text(f" … and {len(entries) - SHOWN} more in --format json.")


def ending(same: str, notes: Sequence[str]) -> Iterator[RenderableType]:
    """Yield what is unchanged and the notes."""
    if same:
        yield Text(f"{same}.", "dim")
    for note in notes:
        yield Text(f"note: {printable(note)}", "dim")


def _table(changes: Sequence[ChangeText], color: str, longest: int) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for change in changes:
        grid.add_row(Text(f" {change.sign}", color), Text(printable(change.what, longest), "bold"))
        for line in (change.where, change.numbers):
            if line:
                grid.add_row("", Text(printable(line, 240)))
    return grid
