"""From attributed sync points to their costs, the findings they make, and the measured step."""

from syncscan.cost.findings import findings
from syncscan.cost.measure import measure
from syncscan.cost.step import summarise

__all__ = ["findings", "measure", "summarise"]
