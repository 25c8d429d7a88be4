"""What a project holds an analysis to: a budget with its exceptions, what was known before, or another state."""

from __future__ import annotations

from syncscan.gate.diff import diff

__all__ = ["diff"]
