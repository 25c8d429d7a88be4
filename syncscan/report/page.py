"""Write blocks as one self-contained HTML page without a script, from templates and static files.

Its Content-Security-Policy allows none, and no style but its own, by hash. jinja2 escapes every value.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from syncscan.report.blocks import Bar, Block, Figure, Heading, Span, lines_of, pieces
from syncscan.report.printable import printable_code, shown
from syncscan.report.units import duration
from syncscan.version import __version__


def template(name: str) -> jinja2.Template:
    """Return a template that escapes its values and fails on undefined names."""
    return _environment().get_template(name)


@functools.cache
def asset(name: str) -> Markup:
    """Return a file of the package unescaped: its text is trusted."""
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), name)[0])


def prose(text: str) -> Markup:
    """Return plain text as markup, with text between backticks as code, and options of a command on one line."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(Markup("<code>{}</code>").format(p) if k % 2 else _unbroken(p) for k, p in enumerate(parts))


def _unbroken(text: str) -> Markup:
    parts = re.split(r"(--[a-z]+(?:-[a-z]+)*)", text)
    whole = Markup('<span class="whole">{}</span>')
    return Markup().join(whole.format(p) if k % 2 else escape(p) for k, p in enumerate(parts))


def _integrity(text: str) -> str:
    """Return the hash by which a Content-Security-Policy names a script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


@functools.cache
def _environment() -> jinja2.Environment:
    folders = sorted(Path(__file__).parents[1].glob("*/templates"))  # the report's own, and the rooms'
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"duration": duration, "integrity": _integrity}
    return env


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
        pieces=lambda words: [(_text(piece), piece.look) for piece in pieces(words) if piece.text],
        is_bar=lambda words: isinstance(words, Bar),
        named=lambda name, share: f"{shown(name, 60)} {share:.0%}",
        lines=lines_of,
        code=printable_code,
        most=most,
    )
    return Markup(text)


def _text(piece: Span) -> str:
    text = shown(piece.text, LONGEST)
    return text if piece.look else prose(text)


def _sections(blocks: Iterable[Block]) -> list[list[Block]]:
    """Return the blocks in sections: those before the first title, and those of each title."""
    sections: list[list[Block]] = [[]]
    for block in blocks:
        if isinstance(block, Figure) or (isinstance(block, Heading) and block.level > 1):
            sections.append([])
        sections[-1].append(block)
    return sections
