"""Each piece of work knows the work before it on its stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from syncscan.model.trace import NONE
from syncscan.whatif.launch_gaps import _before, find_launches
from tests.builder import TraceBuilder

work = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20), st.integers(7, 9)), min_size=1, max_size=15)


@given(work, st.booleans())
def test_the_work_before_on_the_same_stream_and_when_all_of_it_ended(
    drawn: list[tuple[int, int, int]], of_one_stream: bool
) -> None:
    """On one stream or several, also where work overlaps on a stream, as in damaged traces."""
    t = TraceBuilder()
    for k, (at, lasts, stream) in enumerate(sorted(drawn)):
        on = {"device": 0, "stream": 7 if of_one_stream else stream, "correlation": k + 1}
        t.event(ph="X", cat="kernel", name="k", pid=0, tid=on["stream"], ts=at, dur=lasts, args=on)
    trace = t.trace()
    s, rows = trace.slices, trace.device_rows
    before, reached = _before(trace)
    for place, row in enumerate(rows.tolist()):
        earlier = [k for k in range(place) if s.stream[rows[k]] == s.stream[row]]
        assert before[place] == (earlier[-1] if earlier else NONE)
        assert reached[place] == max((s.end[rows[k]] for k in earlier), default=0)


def test_without_work_there_is_none() -> None:
    """A trace of the host alone."""
    t = TraceBuilder()
    t.call("cudaStreamSynchronize", 0, 10)
    assert [column.tolist() for column in _before(t.trace())] == [[], []]


def test_work_that_nothing_tells_the_latency_of_starts_two_microseconds_after_its_launch() -> None:
    """The first of a trace began long after its call, for reasons that weren't recorded; the next lay queued."""
    t = TraceBuilder()
    t.launch(at=1, lasts=100, begins=300)
    t.launch(at=10, lasts=100)
    trace = t.trace()
    result = find_launches(trace, int(trace.slices.ts.min()), int(trace.slices.end.max()))
    assert (result.latency[0], result.usual_latency) == (2_000, 2_000)
