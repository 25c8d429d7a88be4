"""Write blocks for a terminal."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator

from rich import box, table
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from syncscan.report.blocks import (
    Block,
    Code,
    Figure,
    Fold,
    Grid,
    Heading,
    Item,
    Items,
    Sentence,
    Stacked,
    Words,
    lines_of,
    pieces,
    plain,
    unbroken,
)
from syncscan.report.printable import printable, printable_code

LONGEST = 600
"""Characters of a piece of text that are shown, but for places and commands."""
WIDEST = 0.35
"""Part of the terminal that a table's unbroken columns may take; with wider ones each row is drawn as an entry."""
_STYLES = {
    "": "",
    "strong": "bold",
    "dim": "dim",
    "code": "",
    "place": "bold",
    "command": "bold",
    "good": "bold green",
    "warn": "yellow",
    "bad": "bold red",
    "info": "cyan",
}

_DIFF_COLORS = {"+": 32, "-": 31, "@": 36}
"""ANSI color codes: green, red, cyan."""


def drawn(blocks: Iterable[Block], width: int = 100, color: bool = False) -> str:
    text = ""
    for is_patch, group in itertools.groupby(blocks, lambda b: isinstance(b, Code) and b.language == "diff"):
        if is_patch:
            text += "".join(_patch(block, color) for block in group if isinstance(block, Code))
        else:
            text += written(_set_apart(group, width), width, color)
    return text


def _set_apart(blocks: Iterable[Block], width: int) -> Iterator[RenderableType]:
    """Yield what rich draws of the blocks, with an empty line before a heading behind a table, list or fold."""
    before: Block | None = None
    for block in blocks:
        if isinstance(before, (Grid, Items, Fold)) and isinstance(block, Heading) and block.level == 2:
            yield Text("")
        yield from renderables(block, width)
        before = before if isinstance(block, Figure) else block


def written(parts: Iterable[RenderableType], width: int, color: bool) -> str:
    """Return the parts below one another, without trailing spaces.

    A `Text` that says `no_wrap` is cut at the terminal's edge; one that ignores its overflow is on one line, however
    long, so that it can be copied.
    """
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        force_jupyter=False,
        no_color=not color,
        highlight=False,
        legacy_windows=False,
    )
    for part in parts:
        if isinstance(part, Text) and part.overflow == "ignore":
            console.print(part, soft_wrap=True)
        else:
            console.print(part, overflow="ellipsis" if isinstance(part, Text) and part.no_wrap else None)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _patch(block: Code, color: bool) -> str:
    """Return a patch as it is, so that it applies: rich would change tabs, and break long lines."""
    lines = printable_code(block.text.removesuffix("\n") + "\n").split("\n")[:-1]
    return "".join(f"{_diff_line(line) if color else line}\n" for line in lines)


def _diff_line(line: str) -> str:
    color = 1 if line.startswith(("---", "+++")) else _DIFF_COLORS.get(line[:1], 0)
    words = line.removesuffix("\r")
    return f"\x1b[{color}m{words}\x1b[0m{line[len(words) :]}" if color else line


def _code_line(line: str) -> Text:
    """Return a line of code, cut at the terminal's edge; one that begins with > is what it is about."""
    return Text(f" {printable(line)}", "bold" if line.startswith(">") else "dim", no_wrap=True, overflow="ellipsis")


def renderables(block: Block, width: int) -> Iterator[RenderableType]:
    match block:
        case Heading():
            if block.level == 3:
                yield Text("")
            yield _line(block.words, _STYLES[block.look] or "bold")
        case Sentence():
            yield _line(block.words, _STYLES[block.look])
        case Items():
            yield from _items(block)
        case Grid():
            yield from _table(block, width)
        case Code():
            yield from (_code_line(line) for line in block.text.split("\n"))
        case Fold():
            yield Text(f"\n{block.title}", "bold")
            for inner in block.blocks:
                yield from renderables(inner, width)
        case Figure():
            return


def _line(words: Words, style: str = "") -> Text:
    text = Text(style=style, overflow="ignore" if unbroken(words) else None)
    for piece in pieces(words):
        text.append(
            printable(piece.text, 0 if piece.look in ("place", "command") else LONGEST), _STYLES[piece.look] or None
        )
    return text


def _items(block: Items) -> Iterator[RenderableType]:
    items = block.items[: block.most]
    if not any(unbroken(item.words) for item in items):
        yield _marked(items)
    else:
        for item in items:
            yield _line(item.words)
            yield from (Padding(_line(words), (0, 0, 0, 4)) for words in item.below)
    yield from _more(len(block.items) - len(items))


def _marked(items: Iterable[Item]) -> table.Table:
    grid = table.Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for item in items:
        grid.add_row(_line((" ", *pieces(item.mark or ""))), _line(item.words))
        for words in item.below:
            grid.add_row("", _line(words))
    return grid


def _table(block: Grid, width: int) -> Iterator[RenderableType]:
    rows = block.rows[: block.most]
    if _is_wide(block, width):
        yield from _row_by_row(block)
    elif any(column.name for column in block.columns):
        yield _grid(block, table.Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False), width)
    else:
        yield Padding(_grid(block, table.Table.grid(padding=(0, 2)), width), (0, 0, 0, block.indent))
    yield from _more(len(block.rows) - len(rows))


def _is_wide(block: Grid, width: int) -> bool:
    """Return whether the unbroken columns leave too little room for the others."""
    whole = [k for k, column in enumerate(block.columns) if column.whole and not column.right]
    widths = (max((_widest(row[k]) for row in block.rows), default=0) for k in whole)
    return sum(widths) > WIDEST * width


def _grid(block: Grid, grid: table.Table, width: int) -> table.Table:
    """Return the table; numbers are never broken, but the names above them are where it would be too wide."""
    rows = block.rows[: block.most]
    cells = [max((_widest(row[k]) for row in rows), default=0) for k in range(len(block.columns))]
    narrow = sum(max(len(c.name), room) + 2 for c, room in zip(block.columns, cells, strict=True)) > width
    for column, room in zip(block.columns, cells, strict=True):
        least = max(room, _in_two_lines(column.name)) if column.right and narrow else None
        grid.add_column(column.name, no_wrap=column.whole, overflow="fold", width=least)
        grid.columns[-1].justify = "right" if column.right else "left"
    for row in rows:
        grid.add_row(*map(_cell, row))
    return grid


def _in_two_lines(name: str) -> int:
    """Return the least width at which a name fits into two lines."""
    words = name.split()
    return min((max(len(" ".join(words[:k])), len(" ".join(words[k:]))) for k in range(len(words))), default=0)


def _row_by_row(block: Grid) -> Iterator[RenderableType]:
    """Yield each row as its unbroken cells on a line, and the others, with their names, below."""
    for row in block.rows[: block.most]:
        cells = list(zip(block.columns, row, strict=True))
        head = " ".join(_plain(cell) for column, cell in cells if column.whole and not column.right)
        yield Text(printable(head), "bold", overflow="ignore")
        for column, cell in cells:
            if _plain(cell) and (column.right or not column.whole):
                first, *rest = lines_of(cell)
                label = f"{column.name}: " if column.name else ""
                yield Padding(_cell(Stacked(((label, *pieces(first)), *rest))), (0, 0, 0, 4))


def _cell(cell: Words | Stacked) -> RenderableType:
    lines = list(map(_line, lines_of(cell)))
    return lines[0] if len(lines) == 1 else Group(*lines)


def _plain(cell: Words | Stacked) -> str:
    return "\n".join(map(plain, lines_of(cell)))


def _widest(cell: Words | Stacked) -> int:
    return max(len(plain(line)) for line in lines_of(cell))


def _more(count: int) -> Iterator[Text]:
    if count > 0:
        yield Text(f" … and {count} more.")
