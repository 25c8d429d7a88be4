"""Work was queued from the time at which it had been launched: work that began then or later counts, on any stream."""

from __future__ import annotations

import numpy as np
import pytest

from syncscan.cost.queued import Queued
from syncscan.facts.device_work import DeviceWork
from tests.builder import TraceBuilder


@pytest.mark.parametrize("streams", [(7, 7, 7), (7, 8, 8)])
def test_work_that_begins_as_it_was_launched_waits_from_its_own_launch(streams: tuple[int, ...]) -> None:
    """Nothing that begins later was launched earlier; behind the last nothing waits."""
    t = TraceBuilder()
    with t.step(0, 1000):
        for at, stream in zip((10, 20, 30), streams, strict=True):
            t.launch(at=at, lasts=100, stream=stream)
    assert waiting_from(t) == [10, 20, 30]


def test_work_launched_earlier_may_begin_later() -> None:
    """On a stream that is busy, while another one isn't."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch(at=10, lasts=300, stream=7)
        t.launch(at=20, lasts=100, stream=7)
        t.launch(at=30, lasts=100, stream=8)
    assert waiting_from(t) == [10, 20, 20]


def waiting_from(t: TraceBuilder) -> list[float]:
    """In µs, for the begin of each piece of work, earliest first; later than any of them there is never any."""
    trace = t.trace()
    begins = np.sort(trace.slices.ts[trace.device_rows])
    queued = Queued(trace, DeviceWork(trace))
    (device,) = DeviceWork(trace).devices
    *since, never = queued.waiting_from(device, np.append(begins, begins[-1] + 1)).tolist()
    assert never == np.iinfo(np.int64).max
    return [(ns - trace.main_steps[0].ts) / 1e3 for ns in since]
