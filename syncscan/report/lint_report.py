"""Render lint warnings in one of the formats; the renderer is imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

from syncscan.model.lint_warning import LintResult

FORMATS = ("text", "json", "github", "sarif", "csv", "markdown")
"""Formats; each is a module `lint_…` of this package with a function `render(linted) -> str`, or renders flagged
lines."""


def render(linted: LintResult, form: str, **options: Any) -> str:
    """Render lint warnings in one of `FORMATS`.

    Args:
        form: one of `FORMATS`.
        options: the renderer's own: `width` and `color` of `text`.
    """
    if form not in FORMATS:
        raise ValueError(f"{form!r} is no format; use one of {', '.join(FORMATS)}")
    if form in ("github", "sarif", "csv"):
        from syncscan.report import csv, github, sarif
        from syncscan.report.flagged_warnings import flagged_warnings

        flagged = flagged_warnings(linted)
        if form == "github":
            return github.drawn([flagged])
        return sarif.drawn(flagged) if form == "sarif" else csv.drawn(flagged)
    return str(importlib.import_module(f"syncscan.report.lint_{form}").render(linted, **options))
