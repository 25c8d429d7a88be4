"""How much slower kernels run beside a collective: which are compared, and how much slower they may be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from syncscan.whatif.rank_graph import beside_collectives, slowdown
from tests.builder import TraceBuilder


def test_kernels_beside_a_collective_are_slowed_down() -> None:
    """Half of the same kernels lie beside an all-reduce that waits for another rank, and take 1.5 times as long."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=4000):
        for k in range(20):
            t.launch("gemm", at=start + 5 * k, lasts=100)
        t.collective(at=start + 110, begins=start + 2005, until=start + 3900, stream=20)
        for k in range(12):
            t.launch("gemm", at=start + 120 + 5 * k, lasts=150, begins=start + 2010)
    trace = t.trace()
    assert slowdown(trace)[0] == pytest.approx(1.5)
    rows = trace.device_rows
    part = dict(zip(rows.tolist(), beside_collectives(trace, rows).tolist(), strict=True))
    assert {round(part[row], 3) for row in rows.tolist() if trace.slices.dur[row] == 100_000} == {0.0}
    assert {round(part[row], 3) for row in rows.tolist() if trace.slices.dur[row] == 150_000} == {1.0}


def test_layers_of_other_sizes_dont_tell_a_slowdown() -> None:
    """Equal kernels in equal order take three times as long beside a collective: their sizes may differ."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=9000):
        for k in range(12):
            t.launch("conv", at=start + 5 * k, lasts=100 * (1 + k // 4))
        t.collective(at=start + 110, begins=start + 2705, until=start + 8900, stream=20)
        for k in range(12):
            t.launch("conv", at=start + 120 + 5 * k, lasts=300, begins=start + 2710)
    assert slowdown(t.trace())[0] == 1.0


def slower(
    names: Sequence[str] = ("gemm",) * 12,
    further: Sequence[str] = (),
    *,
    lengths: Sequence[float] = (100,),
    lasts: float = 150,
    beside: float = 1.0,
    before: float = 0.0,
) -> float:
    """How many times as long kernels take beside collectives, one every millisecond of stream 7.

    Args:
        names: of the kernels that run first, alone; `lengths` in turn.
        further: of those that run then, `lasts` µs each beside a collective; the same without.
        beside: the part of the later ones that a collective runs beside.
        before: the part of the first ones.
    """
    t = TraceBuilder()
    first = [(name, lengths[k % len(lengths)], before) for k, name in enumerate(names)]
    kernels = [*first, *((name, lasts, beside) for name in further or names)]
    with t.step(0, 1000 * len(kernels) + 1000):
        for k, (name, length, part) in enumerate(kernels):
            end = t.launch(name, at=1000 * k + 1, lasts=length, begins=1000 * k + 10)
            if part:
                t.collective(at=1000 * k + 3, begins=end - part * length, until=end, stream=20)
    return slowdown(t.trace())[0]


@pytest.mark.parametrize(("beside", "times"), [(0.955, 1.5), (0.945, 1.0)])
def test_a_kernel_is_slowed_if_a_collective_runs_beside_95_percent_of_it(beside: float, times: float) -> None:
    """One that is so for a shorter part tells neither."""
    assert slower(beside=beside) == pytest.approx(times)


@pytest.mark.parametrize(("before", "times"), [(0.045, 1.5), (0.055, 1.0)])
def test_a_kernel_is_alone_if_a_collective_runs_beside_5_percent_of_it(before: float, times: float) -> None:
    """Nothing to compare with is no slowdown."""
    assert slower(before=before) == pytest.approx(times)


@pytest.mark.parametrize(
    ("around", "elsewhere", "times"),
    [("axGxa", "bxGxb", 1.0), ("axyGyxa", "bxyGyxb", 1.5)],
)
def test_two_kernels_on_either_side_tell_which_is_the_same(around: str, elsewhere: str, times: float) -> None:
    """They have one name; kernels further away tell nothing about it."""
    assert slower(around * 6, elsewhere * 6) == pytest.approx(times)


@pytest.mark.parametrize(("longest", "times"), [(118, 150 / 109), (122, 1.0)])
def test_kernels_that_differ_by_a_fifth_are_of_several_sizes(longest: float, times: float) -> None:
    """Half of them take 100 µs alone: then nothing says which of them a slowed one is."""
    assert slower(lengths=(100, longest)) == pytest.approx(times)


@pytest.mark.parametrize(("odd", "times"), [(4, 1.5), (6, 1.0)])
@pytest.mark.parametrize("length", [60, 140])
def test_a_tenth_of_them_may_be_of_another_size(odd: int, times: float, length: float) -> None:
    """It is a tenth of 48, on either side: a kernel that was delayed once has no other size."""
    lengths = [100] * 50
    lengths[20 : 20 + odd] = [length] * odd
    assert slower(("gemm",) * 50, lengths=lengths) == pytest.approx(times)


@pytest.mark.parametrize(("lasts", "times"), [(190, 1.9), (290, 2.0), (90, 1.0)])
def test_two_that_share_a_device_take_twice_as_long_at_most(lasts: float, times: float) -> None:
    """More is no contention, and none is faster for it."""
    assert slower(lasts=lasts) == pytest.approx(times)
