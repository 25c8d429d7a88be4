"""Ask stdout for its width, and whether it shows colors and links."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from syncscan.report.blocks import Block


def drawn(blocks: Iterable[Block], form: str, output: str | None = None) -> str:
    """Return a report as Markdown, or as text for stdout or a file.

    Args:
        output: the file; None for stdout, whose width and colors count.
    """
    from syncscan.report import markup, terminal

    return markup.drawn(blocks) if form == "markdown" else terminal.drawn(blocks, width(), output is None and colors())


def width() -> int:
    """Return the columns of a report: the terminal's, between 60 and 140; 100 without a terminal."""
    import shutil

    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))


_KNOWN = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio", "WarpTerminal")
"""TERM_PROGRAM of terminals that show OSC 8 hyperlinks (https://github.com/Alhadis/OSC8-Adoption)."""
_KNOWN_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour", "rio")
_VTE = 5000
"""VTE, which GNOME's terminals and others are made of, knows hyperlinks since 0.50."""


def links() -> bool:
    """Return whether to write hyperlinks: stdout shows colors, and the terminal is known to show links.

    FORCE_HYPERLINK=1 says so of any other terminal, and 0 of none.
    """
    env = os.environ
    if not colors() or env.get("TERM") == "dumb":
        return False
    if forced := env.get("FORCE_HYPERLINK"):
        return forced != "0"
    vte = env.get("VTE_VERSION", "")
    return (
        env.get("TERM_PROGRAM") in _KNOWN
        or env.get("TERM", "").startswith(_KNOWN_TERMS)
        or bool(env.get("KITTY_WINDOW_ID") or env.get("WT_SESSION") or env.get("KONSOLE_VERSION"))
        or (vte.isdecimal() and int(vte) >= _VTE)
    )


def colors() -> bool:
    """Return whether to write colors: stdout is a terminal and NO_COLOR isn't set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
