"""Write blocks as one self-contained HTML page without a script.

Its Content-Security-Policy allows none, and no style but its own, by hash. jinja2 escapes every value.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from syncscan.report.assets import asset, template
from syncscan.report.blocks import Block, Figure, Heading, lines_of, pieces
from syncscan.report.printable import printable_code
from syncscan.report.shown_names import shown
from syncscan.version import __version__

LONGEST = 600
"""Characters of a piece of text that are shown."""
MAX_ROWS = 400
"""Rows of a table and entries of a list; JSON has them all."""


def drawn(blocks: Iterable[Block], command: str, about: str = "") -> str:
    """Return one HTML document; `about` is the command's object, such as a trace, empty where the blocks name it."""
    blocks = list(blocks)
    styles = dict.fromkeys(name for block in blocks if isinstance(block, Figure) for name in block.styles)
    head, *sections = _sections(blocks)
    return template("page.html.j2").render(
        version=__version__,
        style=Markup().join(map(asset, ("page.css", "blocks.css", *styles))),
        command=command,
        about=shown(about, 200),
        head=markup(head),
        sections=list(map(markup, sections)),
    )


def markup(blocks: Iterable[Block], most: int = MAX_ROWS) -> Markup:
    """Return blocks as a part of a page, with at most so many rows of a table."""
    text = template("blocks.html.j2").render(
        blocks=list(blocks),
        pieces=lambda words: [(shown(piece.text, LONGEST), piece.look) for piece in pieces(words)],
        lines=lines_of,
        code=printable_code,
        most=most,
    )
    return Markup(text)


def _sections(blocks: Iterable[Block]) -> list[list[Block]]:
    """Return the blocks in sections: those before the first title, and those of each title."""
    sections: list[list[Block]] = [[]]
    for block in blocks:
        if isinstance(block, Figure) or (isinstance(block, Heading) and block.level > 1):
            sections.append([])
        sections[-1].append(block)
    return sections
