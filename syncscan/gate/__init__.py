"""Checks of a recording or job: a budget with exceptions, known syncs, or another state of the program."""

from __future__ import annotations

from syncscan.gate.baseline import EMPTY, Baseline, baseline_of, read_baseline, text_of
from syncscan.gate.config import Written, found_from, limit_of, read_config
from syncscan.gate.limits import DEFAULT, check
from syncscan.gate.races import KINDS as RACES
from syncscan.gate.state_diff import diff

__all__ = [
    "DEFAULT",
    "EMPTY",
    "RACES",
    "Baseline",
    "Written",
    "baseline_of",
    "check",
    "diff",
    "found_from",
    "limit_of",
    "read_baseline",
    "read_config",
    "text_of",
]
