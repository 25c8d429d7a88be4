"""Facts about the samples of a step's thread that were taken in a DataLoader."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscan import api
from syncscan.facts.loader_samples import loader_share
from syncscan.model.analysis import Analysis
from syncscan.model.capture import HostSample, HostSamples
from syncscan.model.habit import Basis
from syncscan.model.step import Bound
from syncscan.model.trace import Trace
from tests.builder import TraceBuilder

FRAMES = (
    ("/home/me/train.py", "train"),
    ("/opt/env/lib/python3.11/site-packages/torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__"),
    ("/usr/lib/python3.11/threading.py", "Condition.wait"),
)


def sampled(waiting: int, working: int, recorded_us: float = 100.0, unprofiled_us: float | None = None) -> Trace:
    """Steps of 1,000 µs that wait for a worker's batch, with so many samples in that wait and outside of it."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start + 1, start + 1 + recorded_us)
        t.launch(at=start + 2 + recorded_us, lasts=50)
        t.sync("aten::item", at=start + 980)
    trace = t.trace()
    nodes = (HostSample(-1, 0, 7, working), HostSample(0, 1, 700, 1), HostSample(1, 2, 359, waiting))
    host = HostSamples(steps=50, step_us=1000.0, frames=FRAMES, nodes=nodes)
    capture = replace(trace.info.capture, host=host, unprofiled_step_us=unprofiled_us)
    return replace(trace, info=replace(trace.info, capture=capture))


def test_what_a_loader_calls_counts_as_the_loader() -> None:
    """One of 100 samples is in its `__next__`, and 59 are in the lock that it waits for."""
    assert loader_share(sampled(59, 40)) == 0.6


@pytest.mark.parametrize("waiting", [0, 18])
def test_too_few_samples_tell_nothing(waiting: int) -> None:
    """Nineteen of them may be ten as well."""
    assert loader_share(sampled(waiting, 10)) == 0.0


def analysis(recorded_us: float, unprofiled_us: float) -> Analysis:
    return api.analyze_trace(sampled(599, 400, recorded_us, unprofiled_us))


def test_where_most_steps_wait_longer_than_the_recorded_ones_the_samples_count() -> None:
    """The recorded steps wait for 400 µs; by samples a step waits for 600 of 1,000, most of which more workers save."""
    result = analysis(recorded_us=400, unprofiled_us=1000.0)
    (habit,) = (h for h in result.habits if h.rule == "loader-few-workers")
    assert (result.step.bound, habit.basis) == (Bound.INPUT, Basis.SAMPLES)
    assert (habit.cost_us, habit.recoverable_us) == pytest.approx((600, 540))
    assert habit.recoverable_range_us == pytest.approx((60, 600))
    assert habit.evidence == ("the step waits 600 µs for its next batch (60% of it), by samples without the profiler",)


def test_where_the_recorded_steps_wait_as_long_they_are_replayed() -> None:
    """A replay shows what comes after the wait."""
    result = analysis(recorded_us=590, unprofiled_us=1000.0)
    (habit,) = (h for h in result.habits if h.rule == "loader-few-workers")
    assert (result.step.bound, habit.basis) == (Bound.INPUT, Basis.REPLAY)


def test_a_step_that_no_replay_explains_is_bound_by_the_loader_that_samples_saw() -> None:
    """As pytorch/examples' `mnist`: its recorded steps had their batches in time, and took half of the timed ones."""
    result = analysis(recorded_us=10, unprofiled_us=4000.0)
    assert (result.step.bound, result.step.input_share) == (Bound.INPUT, 0.6)
    assert result.step.reason.startswith("By samples without the profiler, the host waits for the DataLoader for 60%")
    assert [h.recoverable_us for h in result.habits if h.rule == "loader-few-workers"] == pytest.approx([2160])
