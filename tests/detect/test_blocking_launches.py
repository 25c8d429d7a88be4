"""Launch blocking: which share of how many launches has to outlast its kernel, and by how much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.detect import blocking_launches as blocking
from syncscan.detect.blocking_launches import blocking_launch
from tests.builder import TraceBuilder


def launches(t: TraceBuilder, count: int, *, held: bool, start: float = 0, api: str = "cudaLaunchKernel") -> None:
    """Launches of kernels that last 50 µs, and end before or long after their call returns."""
    for k in range(count):
        at = start + 200 * k
        t.call(api, at, at + (100 if held else 10))
        t._work("kernel", "gemm", at + 20, 50, 7, 0)


def one(launch: tuple[float, float], kernel: tuple[float, float]) -> int | None:
    """How many launches are held of 19 that are, and one more with these times."""
    t = TraceBuilder()
    t.call("cudaLaunchKernel", *launch)
    t.event(
        ph="X",
        cat="kernel",
        name="gemm",
        pid=0,
        tid=7,
        ts=kernel[0],
        dur=kernel[1] - kernel[0],
        args={"device": 0, "stream": 7, "correlation": t.events[-1]["args"]["correlation"]},
    )
    launches(t, 19, held=True, start=1000)
    result = blocking_launch(t.trace())
    return result[1] if result else None


@pytest.mark.parametrize(("count", "expected"), [(19, False), (20, True)])
def test_a_few_launches_prove_nothing(count: int, expected: bool) -> None:
    """Twenty are enough."""
    t = TraceBuilder()
    launches(t, count, held=True)
    assert (blocking_launch(t.trace()) is not None) == expected


@pytest.mark.parametrize(("free", "held"), [(2, 18), (3, None)])
def test_nearly_all_launches_have_to_be_held(free: int, held: int | None) -> None:
    """Nine of ten, exactly, still count; those that aren't held are no part of the answer."""
    t = TraceBuilder()
    launches(t, 20 - free, held=True)
    launches(t, free, held=False, start=10_000)
    launch = blocking_launch(t.trace())
    assert (launch[1] if launch else None) == held


@pytest.mark.parametrize(("late", "held"), [(1.0, 20), (1.001, 19)])
def test_a_kernel_may_seem_to_outlast_its_launch_by_a_microsecond(late: float, held: int) -> None:
    """Old traces have whole µs."""
    assert one((100, 200), (110, 200 + late)) == held


@pytest.mark.parametrize(("early", "held"), [(1.0, 20), (1.001, 19)])
def test_a_kernel_may_seem_to_start_a_microsecond_before_its_launch(early: float, held: int) -> None:
    """Earlier, and the two don't belong together."""
    assert one((100, 200), (100 - early, 150)) == held


def test_graphs_dont_count() -> None:
    """All kernels of a graph share its launch, which may well outlast the first of them."""
    t = TraceBuilder()
    launches(t, 40, held=True, api="cudaGraphLaunch")
    assert blocking_launch(t.trace()) is None
    launches(t, 20, held=True, start=100_000)
    launch = blocking_launch(t.trace())
    assert launch is not None
    assert launch[1] == 20


def test_kernels_without_a_launch_dont_count() -> None:
    """They were launched before recording began, or their call was lost."""
    t = TraceBuilder()
    launches(t, 20, held=True)
    for k in range(20):
        t._work("kernel", "gemm", 50_000 + 100 * k, 50, 7, 0)
        t.events[-1]["args"]["correlation"] = 900_000 + k
    launch = blocking_launch(t.trace())
    assert launch is not None
    assert launch[1] == 20


def test_the_longest_of_the_blocking_launches_stands_for_all() -> None:
    """A longer one that isn't held was waiting for a place in the queue."""
    t = TraceBuilder()
    launches(t, 20, held=True)
    t.call("cudaLaunchKernel", 20_000, 20_150)
    t._work("kernel", "long", 20_010, 100, 7, 0)
    t.call("cudaLaunchKernel", 30_000, 30_900)
    t._work("kernel", "behind", 30_500, 5000, 7, 0)
    trace = t.trace()
    launch = blocking_launch(trace)
    assert launch is not None
    row, count = launch
    assert (int(trace.slices.ts[row]), int(trace.slices.dur[row]), count) == (20_000_000, 150_000, 21)


def test_a_trace_without_kernels_has_none() -> None:
    """Not an error."""
    assert blocking_launch(TraceBuilder().trace()) is None


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from((1, 5, 100)))
def test_a_part_of_the_kernels_says_no_more_than_all(held: list[bool], some: int) -> None:
    """Which launches are looked at first, and how many, is nothing to the answer."""
    t = TraceBuilder()
    for k, one in enumerate(held):
        launches(t, 1, held=one, start=1000 * k)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(blocking, "_SOME", some)
        launch = blocking_launch(t.trace())
    enough = len(held) >= 20 and sum(held) >= 0.9 * len(held)
    assert (launch[1] if launch else None) == (sum(held) if enough else None)
