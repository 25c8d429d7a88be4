"""Analyze all ranks of a job, each on its own, and join them at their collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscan.fleet.run import analyze_fleet
from syncscan.model.fleet import Fleet

if TYPE_CHECKING:
    import pandas as pd


def _framed(fleet: Fleet) -> pd.DataFrame:
    """Return a job as a pandas frame."""
    from syncscan.report.fleet_table import fleet_frame

    return fleet_frame(fleet)


Fleet._framer = _framed

__all__ = ["analyze_fleet"]
