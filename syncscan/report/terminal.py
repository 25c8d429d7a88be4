"""Render rich renderables as terminal text, in one way for every text report."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text


def written(parts: Iterable[RenderableType], width: int, color: bool) -> str:
    """Return the parts below one another, without trailing spaces.

    Args:
        parts: what to draw; a `Text` that says `no_wrap` is cut at the terminal's edge; one
            that ignores its overflow is on one line, however long, so that it can be copied.
        width: the width of the terminal, in characters.
        color: whether to write colors.
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
