"""A capture's record of a run gives its mean step, and each phase's share."""

from __future__ import annotations

from typing import Any

from syncscan.model.capture import CaptureTable, RunRecord, capture_table
from syncscan.model.program_run import run_of

STEPS = [100.0, 10.0, 10.0, 60.0, 500.0, 10.0, 10.0, 60.0, 10.0, 10.0, 60.0]
"""Starting, then a phase of 50 µs before each third step, with a recorded step of 500 µs among them."""
PHASE: dict[str, Any] = {
    "kind": "rollout",
    "name": "rollout",
    "file": "ppo.py",
    "function": "main",
    "first": 3,
    "last": 9,
    "us": 100.0,
    "at": [3, 7, 10],
}
RUN: dict[str, Any] = {
    "steps": 11,
    "steps_us": STEPS,
    "window": [1, 11],
    "disturbed": [[0, 1, "starting"], [4, 5, "profiler"]],
    "sampled_us": 240.0,
    "phases": [{**PHASE, "kind": "checkpoint", "us": 24.0, "at": [7]}, PHASE],
}


def record(**more: Any) -> RunRecord | None:
    table, refused = capture_table({"run": {**RUN, **more}})
    assert isinstance(table, CaptureTable)
    assert len(refused) == (table.run is None)
    return table.run


def test_the_mean_step_is_without_the_capture_s_own_work() -> None:
    """Samples, and what it does at each step's end: 4 µs in the nine steps that count."""
    run, disturbed = run_of(record()), run_of(record(own_us=9 * 4.0))
    assert run is not None
    assert disturbed is not None
    assert (run.counted, disturbed.mean_us) == (9, run.mean_us - 4.0)


def test_the_mean_is_of_undisturbed_steps_alone() -> None:
    """Without what starts, and what the profiler was in."""
    run = run_of(record())
    assert run is not None
    assert (run.counted, run.mean_us, run.watched_us) == (9, 240 / 9, 840.0)


def test_shares_are_of_what_was_sampled_and_add_up() -> None:
    """The longest first; what no phase has is the steps'."""
    run = run_of(record())
    assert run is not None
    assert run.steps_share is not None
    assert [round(phase.share, 3) for phase in run.phases] == [0.417, 0.1]
    assert round(run.steps_share, 3) == 0.483


def test_a_phase_comes_each_so_many_steps() -> None:
    """In the mean of the times that it came; what came once comes nobody knows when."""
    run = run_of(record())
    assert run is not None
    assert [phase.every for phase in run.phases] == [3.5, None]


def test_a_run_that_was_disturbed_from_end_to_end_tells_nothing() -> None:
    """As that of a script with a few steps."""
    assert run_of(record(disturbed=[[0, 11, "profiler"]])) is None
    assert run_of(None) is None


def test_what_is_no_run_is_refused() -> None:
    """A time below zero."""
    assert record(steps_us=[-1.0]) is None
