"""From attributed sync points to their costs, the findings they make, the measured step and where its host was."""

from syncscan.cost.integrity import integrity_of
from syncscan.cost.merge import merged_findings
from syncscan.cost.processes import apart
from syncscan.cost.sampled_host import sampled_of
from syncscan.cost.step import step_summary
from syncscan.cost.wait_and_bubble import costs_of

__all__ = ["apart", "costs_of", "integrity_of", "merged_findings", "sampled_of", "step_summary"]
