"""Blocks of which a report consists; its three writers (`terminal`, `markup`, `page`) know nothing else.

Strings in blocks are as recorded: each writer makes them safe for its own medium.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

Look = Literal["", "strong", "dim", "code", "place", "command", "good", "warn", "bad", "info"]
"""Look of a piece of text. A line with a place or a command is never broken, so that it can be opened or copied."""


LITERAL = ("code", "place", "command")
"""Looks of text that isn't prose."""
BAR = 60
"""Characters of a bar, where it isn't drawn."""


class Span(Struct, frozen=True):
    text: str
    look: Look = ""


class Bar(Struct, frozen=True):
    """A line that shows the parts of a whole: each with its name, which only a page can show, and its share."""

    parts: tuple[tuple[str, float], ...]


Words = str | Span | Bar | Sequence[str | Span]
"""Text on one line, whose pieces may look different."""


class Stacked(Struct, frozen=True):
    """A cell of several lines."""

    lines: tuple[Words, ...]


class Heading(Struct, frozen=True):
    """A heading: the verdict of the whole report (level 1), the title of a section (2) or the name of an entry (3)."""

    words: Words
    level: int = 2
    look: Look = ""


class Sentence(Struct, frozen=True):
    words: Words
    look: Look = ""


class Item(Struct, frozen=True):
    """An entry of a list: its line, and lines below it."""

    words: Words
    below: tuple[Words, ...] = ()
    mark: Span | None = None
    """Number or sign in front of it."""
    opens: Mapping[str, Any] | None = None
    """Names and values by which a page's script finds what it opens."""


class Items(Struct, frozen=True):
    items: tuple[Item, ...]
    most: int = 100
    """Entries that are shown, except on a page."""


class GridColumn(Struct, frozen=True):
    name: str = ""
    right: bool = False
    """Whether it holds numbers, which are aligned to the right."""
    whole: bool = False
    """Whether its lines are never broken."""


class Grid(Struct, frozen=True):
    """A table; one whose columns have no names lists facts, each with its label."""

    columns: tuple[GridColumn, ...]
    rows: tuple[tuple[Words | Stacked, ...], ...]
    most: int = 100
    """Rows that are shown, except on a page."""
    indent: int = 2
    """Columns of a terminal by which facts stand below what they are about."""


class Code(Struct, frozen=True):
    """Text whose lines are shown as they are."""

    text: str
    language: str = ""


class Figure(Struct, frozen=True):
    """A drawing, which only a page can show."""

    title: str
    draw: Callable[[], str]
    """Returns trusted markup; called only by a writer that shows it."""
    styles: tuple[str, ...] = ()


class Fold(Struct, frozen=True):
    """Blocks that a reader can unfold, where the medium allows it."""

    title: str
    blocks: tuple[Block, ...]


Block = Heading | Sentence | Items | Grid | Code | Figure | Fold


def pieces(words: Words) -> tuple[Span, ...]:
    if isinstance(words, Bar):
        shades = zip(itertools.cycle("█▒░▓"), words.parts, strict=False)
        return (Span("".join(shade * round(BAR * share) for shade, (_, share) in shades), "dim"),)
    parts = (words,) if isinstance(words, str | Span) else words
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def plain(words: Words) -> str:
    return "".join(piece.text for piece in pieces(words))


def lines_of(cell: Words | Stacked) -> Sequence[Words]:
    return cell.lines if isinstance(cell, Stacked) else (cell,)


def unbroken(words: Words) -> bool:
    return any(piece.look in ("place", "command") for piece in pieces(words))


def code(text: str) -> Span:
    return Span(text, "code")


def place(text: str) -> Span:
    """Return a line of a file, such as `train.py:12`, which editors can open."""
    return Span(text, "place")


def command(words: Iterable[str]) -> Span:
    return Span(shlex.join(words), "command")


def strong(text: str) -> Span:
    """Return the text that a reader has to see first."""
    return Span(text, "strong")


def to_do(sentence: Words) -> Sentence:
    return Sentence((Span("→ ", "good"), *pieces(sentence)))


def notes(texts: Iterable[str]) -> tuple[Sentence, ...]:
    return tuple(Sentence(f"note: {text}", "dim") for text in texts)


def facts(pairs: Iterable[tuple[str, Words | Stacked]], indent: int = 2) -> Grid:
    """Return facts as a table without names of columns, each with its label; empty ones are left out."""
    return Grid(
        (GridColumn(whole=True), GridColumn()),
        tuple((label, text) for label, text in pairs if any(map(plain, lines_of(text)))),
        indent=indent,
    )
