"""Write blocks as GitHub-flavored Markdown, in which text shows literally: no markup, link, mention or HTML."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from syncscan.report.blocks import (
    LITERAL,
    Block,
    Code,
    Figure,
    Fold,
    Grid,
    Heading,
    Item,
    Items,
    Sentence,
    Span,
    Stacked,
    Words,
    lines_of,
    pieces,
)
from syncscan.report.printable import printable_code, shown
from syncscan.version import __version__

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_BREAK = "\u200b"
"""Zero-width space that keeps GitHub from turning text into a mention, a reference or a bare link."""
_LINKING = re.compile(r"(@|#|GH-)(?=\S)", re.IGNORECASE)
_BARE_LINK = re.compile(r"(?<=www)\.|:(?=//)|(?<=mailto):|(?<=xmpp):", re.IGNORECASE)
"""Where GitHub detects a bare link: the dot or colon is escaped, and the text before it separated (cmark-gfm,
extensions/autolink.c)."""
_TEXT, _NAME = 600, 160
MAX_CHARACTERS = 60_000
"""Characters of a report; GitHub cuts a comment at 65,536."""
MAX_CODE = 40_000
"""Longest code that is shown, in characters; a GitHub comment holds 65,536."""


def drawn(blocks: Iterable[Block]) -> str:
    """Return the blocks as Markdown for a pull request's comment or a job's summary."""
    blocks = list(blocks)
    room = MAX_CHARACTERS - sum(len(part) + 2 for each in blocks for part in _parts(each, 0))
    parts: list[str] = []
    for block in blocks:
        parts += _parts(block, room)
        if isinstance(block, Fold):
            room -= sum(len(part) + 2 for part in parts[-1:])
    return "\n\n".join([*parts, f"<sub>syncscan {__version__}</sub>"]) + "\n"


def _parts(block: Block, room: int) -> Iterator[str]:
    match block:
        case Heading():
            yield {1: "### ", 2: "#### "}.get(block.level, "") + _prose(block.words)
        case Sentence():
            if not (text := _prose(block.words)):
                return  # an empty line, which paragraphs have anyway
            yield f"<sub>{text}</sub>" if block.look == "dim" else text
        case Items():
            yield "\n".join(map(_item, block.items[: block.most]))
            yield from _more(len(block.items) - block.most)
        case Grid():
            yield "\n".join(_table(block))
            yield from _more(len(block.rows) - block.most)
        case Code():
            yield _fenced(block) if len(block.text) <= MAX_CODE else "The code is too long for a comment."
        case Fold():
            parts = [f"<details><summary>{escaped(block.title)}</summary>", *_fitting(block.blocks, room), "</details>"]
            yield "\n\n".join(parts)
        case Figure():
            return


def _fitting(blocks: Sequence[Block], room: int) -> Iterator[str]:
    starts = sorted({0, *(k for k, block in enumerate(blocks) if isinstance(block, Heading))})
    for number, (begin, end) in enumerate(itertools.pairwise([*starts, len(blocks)])):
        parts = [part for block in blocks[begin:end] for part in _parts(block, room)]
        room -= sum(len(part) + 2 for part in parts)
        if room < 0:
            yield f"*The other {len(starts) - number} don't fit here.*"
            return
        yield from parts


def _prose(words: Words) -> str:
    return "".join(map(_piece, pieces(words)))


def _piece(piece: Span) -> str:
    if piece.look in LITERAL:
        return code(piece.text, _TEXT)
    return f"**{escaped(piece.text)}**" if piece.look == "strong" else escaped(piece.text)


def _item(item: Item) -> str:
    lines = "<br>".join(map(_prose, (item.words, *item.below)))
    if item.mark is None:
        return f"- {lines}"
    mark = item.mark.text.strip()
    return f"{mark} {lines}" if mark.rstrip(".").isdecimal() else f"- {code(mark)} {lines}"


def _table(block: Grid) -> Iterator[str]:
    yield _row(escaped(column.name) for column in block.columns)
    yield f"|{'|'.join('--:' if column.right else '---' for column in block.columns)}|"
    for row in block.rows[: block.most]:
        yield _row(map(_cell, row))


def _row(cells: Iterable[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _cell(cell: Words | Stacked) -> str:
    return "<br>".join("".join(map(_in_cell, pieces(words))) for words in lines_of(cell))


def _in_cell(piece: Span) -> str:
    """Return a piece with bars in code escaped: they end a cell even there."""
    return _piece(piece).replace("|", "\\|") if piece.look in LITERAL else _piece(piece)


def _fenced(block: Code) -> str:
    fence = "`" * max(3, 1 + _longest_run(block.text))
    return f"{fence}{block.language}\n{printable_code(block.text.rstrip())}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _more(count: int) -> Iterator[str]:
    if count > 0:
        yield f"… and {count} more."


def escaped(text: str, limit: int = _TEXT) -> str:
    """Return text as Markdown prose on one line, with every mark escaped."""
    text = _LINKING.sub(rf"\1{_BREAK}", shown(text, limit))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _BARE_LINK.sub(rf"{_BREAK}\\\g<0>", _SPECIAL.sub(r"\\\1", text))


def code(text: str, limit: int = _NAME) -> str:
    """Return text as a code span with a fence that nothing in it can close; empty for empty text."""
    text = shown(text, limit).strip()
    if not text:
        return ""
    fence = "`" * (1 + _longest_run(text))
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str, limit: int = _NAME) -> str:
    """Return text as a code span in a table cell, with bars escaped: they end a cell even in code."""
    return code(text, limit).replace("|", "\\|")
