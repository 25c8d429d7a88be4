"""From attributed sync points to their costs, the findings they make and the measured step."""

from syncscan.cost.collectives import collectives_of
from syncscan.cost.merge import merged_findings, without_preparation
from syncscan.cost.processes import apart
from syncscan.cost.read_again import told_once
from syncscan.cost.step import step_summary
from syncscan.cost.wait_and_bubble import costs_of

__all__ = [
    "apart",
    "collectives_of",
    "costs_of",
    "merged_findings",
    "step_summary",
    "told_once",
    "without_preparation",
]
