"""Analyze all ranks of a job, each on its own, and join them at their collectives."""

from __future__ import annotations

from syncscan.fleet.run import analyze_fleet

__all__ = ["analyze_fleet"]
