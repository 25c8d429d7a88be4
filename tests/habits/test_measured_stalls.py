"""Projected gains of habits that stall the host hold the measured gains of their fixes.

Recorded and measured on an H200 with torch 2.11 by `benchmarks/host_stalls.py`; each variant timed in turn with the
other, and shares of the step compared, for its host's speed drifts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.host_stalls import PROGRAMS
from syncscan.model.analysis import Analysis
from tests.each import each
from tests.recordings import analyzed

FOLDER = Path(__file__).parent.parent.parent / "sample_traces" / "stalls"
TRUTH = json.loads((FOLDER / "truth.json").read_text())
NEW = {"lock-held", "autocast-casts", "first-touch"}


def analysis(name: str) -> Analysis:
    return analyzed(FOLDER / f"{name}.json.gz")


@each("name", TRUTH)
def test_the_measured_share_lies_in_the_projected_range(name: str) -> None:
    """And of the new habits none speaks but the one that the program was written for."""
    outcome = analysis(name)
    (habit,) = (h for h in outcome.habits if h.rule == PROGRAMS[name].rule)
    low, high = (us / outcome.step.unprofiled_us for us in habit.recoverable_range_us)
    assert low <= 1 - TRUTH[name]["fixed"] / TRUTH[name]["habit"] <= high
    assert {h.rule for h in outcome.habits} & NEW <= {PROGRAMS[name].rule}


@pytest.mark.parametrize("name", ["lock_python", "lock_busy", "lock_parser"])
def test_a_lock_that_another_thread_holds_is_projected_within_ten_points(name: str) -> None:
    """Its thread and line are named."""
    outcome = analysis(name)
    (habit,) = (h for h in outcome.habits if h.rule == "lock-held")
    measured = 1 - TRUTH[name]["fixed"] / TRUTH[name]["habit"]
    assert habit.recoverable_us / outcome.step.unprofiled_us == pytest.approx(measured, abs=0.1)
    assert "thread reporter ran for" in habit.evidence[1]
    assert "in host_stalls.py:" in habit.evidence[1]
