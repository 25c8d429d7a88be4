"""From the traces of all ranks of a job to a Fleet: each analysed as alone, and joined at their collectives."""

from syncscan.fleet.api import analyze_fleet

__all__ = ["analyze_fleet"]
