"""How streams share a device, and what a pipeline could save."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.trace import Trace
from syncscan.whatif.overlap import overlaps
from tests.builder import TraceBuilder


def two_streams(offset: float) -> Trace:
    """Two kernels of 300 µs per step, the second on a stream of its own, begun `offset` after the first."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch("a", at=start + 10, lasts=300, stream=7)
        t.launch("b", at=start + 10 + offset, lasts=300, stream=13)
    return t.trace()


def serial() -> Trace:
    """An encoder of 400 µs and a decoder of 600 µs on one stream; the host needs 200 µs."""
    t = TraceBuilder()
    for k in range(4):
        start = 1010 * k
        with t.step(start, start + 1010):
            with t.scope("encoder", start + 1, start + 20):
                t.launch("encode", at=start + 2, lasts=400)
            with t.scope("decoder", start + 21, start + 60):
                t.launch("decode", at=start + 22, lasts=600)
            t.synchronize(at=start + 200)
    return t.trace()


def test_overlap_is_the_time_in_which_both_streams_work() -> None:
    """Two kernels of 300 µs, the second 100 µs later, share 200 µs."""
    (result,) = overlaps(two_streams(100))
    assert result.streams == (7, 13)
    assert result.work_us == pytest.approx((300, 300))
    assert result.shared_us == pytest.approx(200)


def test_one_after_the_other_is_no_overlap() -> None:
    """Streams that take turns share nothing."""
    (result,) = overlaps(two_streams(400))
    assert result.shared_us == 0


def test_one_stream_has_no_overlap() -> None:
    """There is nothing to say of a device with one stream."""
    assert overlaps(serial()) == ()


def test_a_pipeline_is_bound_by_the_longer_of_the_two() -> None:
    """An encoder of 400 µs beside a decoder of 600 µs can save at most its own 400 µs."""
    result = api.analyze_trace(serial(), step_ms=1.01).pipeline("encoder")
    assert (result.scope_us, result.beside_us) == pytest.approx((400, 600))
    assert result.saving_us == pytest.approx(390, abs=15)


def test_a_pipeline_of_an_unknown_scope_is_refused() -> None:
    """The message lists the scopes that there are."""
    with pytest.raises(UsageError) as raised:
        api.analyze_trace(serial()).pipeline("encodr")
    assert "encoder" in raised.value.hint


def test_work_that_takes_no_time_overlaps_with_nothing() -> None:
    """A clock that stood still tells nothing of streams."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch("a", at=start + 10, lasts=0)
        t.launch("b", at=start + 20, lasts=0, stream=13)
    assert overlaps(t.trace()) == ()
