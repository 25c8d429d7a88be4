"""From an Analysis to text: one renderer a file, each a pure function; `render` finds the one of a format."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis

FORMATS = ("text", "json", "csv", "markdown", "html", "sarif", "github", "junit", "fragment", "brief")
"""Each is a module of this package with a function `render(analysis) -> str`."""


def render(analysis: Analysis, form: str, **options: Any) -> str:
    """An analysis in one of `FORMATS`; the renderer is imported when it is first asked for.

    Args:
        analysis: any analysis.
        form: one of `FORMATS`.
        options: the renderer's own: `verbose`, `width` and `color` of `text`, `page` of `brief`.
    """
    if form not in FORMATS:
        raise ValueError(f"{form!r} is no format; use one of {', '.join(FORMATS)}")
    return str(importlib.import_module(f"syncscan.report.{form}").render(analysis, **options))
