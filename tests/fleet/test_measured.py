"""Jobs of two ranks on two H200s (`benchmarks/jobs.py`): projected gains lie by what removing the syncs gained."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mode

import pytest

from syncscan.fleet.join import join
from syncscan.fleet.worker import read_rank
from syncscan.model.fleet import Fleet, LateCause

JOBS = Path(__file__).parents[2] / "sample_traces/jobs"
TRUTH = json.loads((JOBS / "truth.json").read_text())
HOLDS = {
    "ddp.one_rank_item": (0, LateCause.SYNC),
    "ddp.straggler": (1, LateCause.KERNELS),
    "fsdp2.one_rank_item": (0, LateCause.SYNC),
}
"""Who delays the others, and why, as the job was written."""


def joined(name: str) -> Fleet:
    """A job of these."""
    return join([read_rank(str(path)) for path in sorted((JOBS / name).glob("rank*.json.gz"))])


@pytest.mark.parametrize("name", TRUTH)
def test_the_jobs_gain_is_what_was_measured(name: str) -> None:
    """Inside its range, off by less than 1 % of the step; who delays the others is named, with the cause."""
    fleet = joined(name)
    assert fleet.baseline_us is not None
    assert fleet.recoverable_us is not None
    assert fleet.recoverable_range_us is not None
    gained = (1 - TRUTH[name]["ratio"]) * fleet.baseline_us
    low, high = fleet.recoverable_range_us
    assert abs(fleet.recoverable_us - gained) < 0.01 * fleet.baseline_us
    assert low <= gained <= high
    assert mode((late.rank, late.cause) for late in fleet.lateness[1:]) == HOLDS[name]
    assert (fleet.unmatched, fleet.missing) == (0, ())
