"""Render an Analysis as text; each format's renderer is a pure function in a file of its own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis

FORMATS = ("text", "json", "csv", "markdown", "html", "sarif", "github", "junit", "fragment", "svg")
"""Formats; text and Markdown are blocks, each other one a module of this package with a function `render(analysis)`."""


def render(analysis: Analysis, form: str, **options: Any) -> str:
    """Render an analysis in one of `FORMATS`, importing its renderer on first use."""
    if form not in FORMATS:
        raise ValueError(f"{form!r} is no format; use one of {', '.join(FORMATS)}")
    if form in ("text", "markdown"):
        from syncscan.report import analysis_report, markup, terminal

        blocks = analysis_report.blocks(analysis, options.pop("verbose", False), options.pop("program", None))
        return terminal.drawn(blocks, **options) if form == "text" else markup.drawn(blocks)
    return str(importlib.import_module(f"syncscan.report.{form}").render(analysis, **options))
