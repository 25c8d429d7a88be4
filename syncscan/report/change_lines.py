"""From the changes between two states, as a story tells them, to their lines in a terminal: of traces, of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.model.diff import Change
from syncscan.report.diff_story import ToldChange
from syncscan.report.printable import printable

_COLORS = {Change.NEW: "bold red", Change.CHANGED: "yellow", Change.GONE: "green", Change.OCCASIONAL: "dim"}
SHOWN = 20
"""Places of a kind that are shown; JSON has them all."""


def change_lines(
    changes: Mapping[Change, Sequence[ToldChange]], titles: Mapping[Change, str], longest: int
) -> Iterator[RenderableType]:
    """Each kind with its title and a table.

    Args:
        changes: by kind, in their order.
        titles: of each kind.
        longest: characters of what a change is.
    """
    for kind, told in changes.items():
        yield Text(f"{titles[kind]}:", "bold")
        yield _table(told[:SHOWN], _COLORS[kind], longest)
        if len(told) > SHOWN:
            yield Text(f" … and {len(told) - SHOWN} more in --format json.")


def ending(same: str, notes: Sequence[str]) -> Iterator[RenderableType]:
    """What is as it was, and what can't be told."""
    if same:
        yield Text(f"{same}.", "dim")
    for note in notes:
        yield Text(f"note: {printable(note)}", "dim")


def _table(changes: Sequence[ToldChange], color: str, longest: int) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for told in changes:
        grid.add_row(Text(f" {told.sign}", color), Text(printable(told.what, longest), "bold"))
        for line in (told.where, told.numbers):
            if line:
                grid.add_row("", Text(printable(line, 240)))
    return grid
