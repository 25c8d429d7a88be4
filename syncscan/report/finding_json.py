"""Build what JSON writes of a finding; times are µs per step."""

from __future__ import annotations

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, FindingFacts
from syncscan.model.json_text import written


def finding_document(f: Finding, analysis: Analysis) -> FindingFacts:
    """Return what JSON writes of a finding: without its evidence, and without times that the trace can't tell."""
    withheld = {"wait_us": None, "bubble_us": None} if analysis.step.waits_withheld else {}
    return written(FindingFacts, f, **withheld)
