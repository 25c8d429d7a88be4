"""Render the tables on the host's time for a terminal's width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from syncscan.report import host
from syncscan.report.printable import printable
from syncscan.report.story import Story

NAME = 12
"""Least width of a name in a table of the host's time, in columns."""
_GAP = 2
"""Columns between two of a table."""


def host_tables(story: Story, width: int) -> Iterator[RenderableType]:
    """Yield the tables, and what they are based on; nothing where the host's time isn't known.

    Args:
        width: the width of the terminal, in characters.
    """
    if story.host_tables:
        yield Text("")
        yield Text(f"{host.TITLE}:", "bold")
        yield from (Padding(_of_host(table, width - 1), (0, 0, 0, 1)) for table in story.host_tables)
        yield from (Padding(Text(printable(note), "dim"), (0, 0, 0, 1)) for note in story.host_notes)


def kernel_table(story: Story, width: int) -> Iterator[RenderableType]:
    """Yield what is left to gain where the device is the limit, and a table of the longest kernels.

    Args:
        width: the width of the terminal, in characters.
    """
    if story.kernel_table:
        yield Text("")
        if story.kernels:
            yield Text(printable(story.kernels))
        yield Padding(_of_host(story.kernel_table, width - 1), (0, 0, 0, 1))


def compile_table(story: Story, width: int) -> Iterator[RenderableType]:
    """Yield dynamo's graph breaks as a sentence and a table; nothing unless dynamo was asked.

    Args:
        width: the width of the terminal, in characters.
    """
    if story.compiled or story.compile_notes:
        yield Text("")
        yield Text(printable(story.compiled)) if story.compiled else Text("torch.compile:", "bold")
    if story.compile_table:
        yield Padding(_in_words(story.compile_table), (0, 0, 0, 1))
    yield from (Padding(Text(printable(note), "dim"), (0, 0, 0, 1)) for note in story.compile_notes)


def _in_words(table: host.TextTable) -> Group:
    """Return the rows whose last words are whole sentences: each as long as it is, below its place."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="blue", no_wrap=True, overflow="ellipsis")
    grid.add_column(overflow="fold")
    for place, became, why, waits in table.rows:
        grid.add_row(printable(place, 60), Text(printable(f"{became}: {why}", 300)))
        if waits:
            grid.add_row("", Text(printable(f"the host waits there: {waits}", 300), "bold"))
    if table.more:
        grid.add_row("", f"… {table.more} more: --format json")
    return Group(Text(table.title, "bold"), grid)


def _of_host(source: host.TextTable, width: int) -> Group:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    cells = [[printable(text, 60) for text in row] for row in source.rows]
    widths = _widths(source, cells, width)
    for number, (name, room) in enumerate(zip(source.head, widths, strict=True)):
        table.add_column(name, justify="left" if number < source.words else "right", width=room)
    for row in cells:
        table.add_row(*(Text(_ending(text, room)) for text, room in zip(row, widths, strict=True)))
    if source.more:
        table.add_row(f"… {source.more} more", *[""] * (len(source.head) - 1))
    return Group(Text(source.title), table)


def _widths(source: host.TextTable, cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return column widths: numbers are never cut, heads may take two lines, the longest names shrink first."""
    columns = list(zip(*cells, strict=True)) if cells else [()] * len(source.head)
    longest = [max(map(cell_len, column), default=0) for column in columns]
    least = [max(_in_two_lines(head), room) for head, room in zip(source.head, longest, strict=True)]
    widths = [max(cell_len(head), room) for head, room in zip(source.head, longest, strict=True)]
    over = sum(widths) + _GAP * len(widths) - width
    if over > 0:
        widths = [*widths[: source.words], *least[source.words :]]
        over = sum(widths) + _GAP * len(widths) - width
    while over > 0 and max(widths[: source.words]) > NAME:
        widths[widths.index(max(widths[: source.words]))] -= 1
        over -= 1
    return widths


def _in_two_lines(head: str) -> int:
    """Return the least width at which a head fits into two lines."""
    words = head.split()
    return min(max(len(" ".join(words[:k])), len(" ".join(words[k:]))) for k in range(1, len(words) + 1))


def _ending(text: str, room: int) -> str:
    """Return the end of a path or scope chain that is too long: its end distinguishes it."""
    if cell_len(text) <= room:
        return text
    begin = next(k for k in range(1, len(text) + 1) if cell_len(text[k:]) < room)
    return f"…{text[begin:]}"
