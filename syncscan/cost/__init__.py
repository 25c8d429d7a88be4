"""Measure the cost of attributed sync points, merge them to findings, and measure the step."""

from syncscan.cost.collectives import collectives_of
from syncscan.cost.merge import merged_findings, name_repeated_reads, without_preparation
from syncscan.cost.step import step_summary
from syncscan.cost.wait_and_bubble import measured

__all__ = [
    "collectives_of",
    "measured",
    "merged_findings",
    "name_repeated_reads",
    "step_summary",
    "without_preparation",
]
