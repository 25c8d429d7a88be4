"""Render an Analysis as text; each format's renderer is a pure function in a file of its own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from syncscan.model.analysis import Analysis
    from syncscan.report.flagged import Flagged

FORMATS = ("text", "json", "csv", "markdown", "html", "sarif", "github", "junit", "fragment", "svg")
"""Formats; text and Markdown are blocks, four are rows, each other one a module with a function `render(analysis)`."""
ROWS = ("csv", "sarif", "github", "junit")
"""Formats of flagged lines, each a module of this package with a function `drawn`."""


def render(analysis: Analysis, form: str, **options: Any) -> str:
    """Render an analysis in one of `FORMATS`, importing its renderer on first use."""
    if form not in FORMATS:
        raise ValueError(f"{form!r} is no format; use one of {', '.join(FORMATS)}")
    if form in ("text", "markdown"):
        from syncscan.report import analysis_report, markup, terminal

        blocks = analysis_report.blocks(analysis, options.pop("verbose", False), options.pop("program", None))
        return terminal.drawn(blocks, **options) if form == "text" else markup.drawn(blocks)
    if form in ROWS:
        from syncscan.report.flagged import flagged_findings

        return listed([flagged_findings(analysis)], form)
    return str(importlib.import_module(f"syncscan.report.{form}").render(analysis, **options))


def listed(flagged: Sequence[Flagged], form: str) -> str:
    """Return the lines that any kind of result flags in one of `ROWS`, importing its writer on first use."""
    return str(importlib.import_module(f"syncscan.report.{form}").drawn(flagged))
