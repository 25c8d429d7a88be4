"""Render an Analysis as an SVG file: one step before and after its fixes."""

from __future__ import annotations

from syncscan.model.analysis import Analysis
from syncscan.report import before_after_file


def render(analysis: Analysis) -> str:
    """Return the picture as an SVG document; where no step can be replayed, it holds the verdict and says so."""
    return before_after_file.document(analysis)
