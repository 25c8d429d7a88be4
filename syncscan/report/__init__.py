"""Render an Analysis as text; each format's renderer is a pure function in a file of its own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis

FORMATS = ("text", "json", "csv", "markdown", "html", "sarif", "github", "junit", "fragment", "svg")
"""Formats; each but Markdown is a module of this package with a function `render(analysis) -> str`."""


def render(analysis: Analysis, form: str, **options: Any) -> str:
    """Render an analysis in one of `FORMATS`, importing its renderer on first use."""
    if form not in FORMATS:
        raise ValueError(f"{form!r} is no format; use one of {', '.join(FORMATS)}")
    if form == "markdown":
        from syncscan.report import analysis_report, markup

        return markup.drawn(analysis_report.blocks(analysis))
    return str(importlib.import_module(f"syncscan.report.{form}").render(analysis, **options))
