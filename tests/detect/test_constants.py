"""Each number that decides whether a call waited, from both sides; times in µs."""

from __future__ import annotations

import pytest

from syncscan.detect import detect
from syncscan.model.finding import SyncPoint
from tests.builder import TraceBuilder

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"


def found(t: TraceBuilder) -> tuple[SyncPoint, ...]:
    points, warnings = detect(t.trace())
    assert warnings == ()
    return tuple(points)


def told() -> TraceBuilder:
    """A trace with an op and a scope, so that its thread is the program's."""
    t = TraceBuilder()
    t.op("aten::add", 0, 1)
    return t


@pytest.mark.parametrize(("held", "waited"), [(21, True), (19, False)])
def test_a_copy_waited_if_work_before_it_held_it_for_20_us(held: float, waited: bool) -> None:
    """An asynchronous copy from pageable memory, called so long before the stream's work was done."""
    t = told()
    t.launch("kernel", at=10, lasts=200)
    t.copy(PAGEABLE, at=211 - held, lasts=2, blocks=True)
    assert bool(found(t)) is waited


@pytest.mark.parametrize(("early", "waited"), [(19, True), (21, False)])
def test_a_copy_that_returned_20_us_before_the_work_was_done_did_not_wait_for_it(early: float, waited: bool) -> None:
    """Only as far as the clocks of host and device may differ."""
    t = told()
    t.launch("kernel", at=10, lasts=200)
    t.copy(PAGEABLE, at=20, lasts=2)
    t.events[-2]["dur"] = 211 - early - 20
    assert bool(found(t)) is waited


@pytest.mark.parametrize(("lasts", "waited"), [(101, True), (99, False)])
def test_an_unknown_call_is_looked_at_from_100_us_on(lasts: float, waited: bool) -> None:
    """A call that no list names counts where it lasted long and returned with the work that was queued."""
    t = told()
    t.launch("kernel", at=10, lasts=200)
    t.call("cudaSomethingNew", 212 - lasts, 212)
    assert bool(found(t)) is waited


@pytest.mark.parametrize(("behind", "waited"), [(99, True), (101, False)])
def test_an_unknown_call_that_went_on_for_100_us_did_not_wait_for_the_work(behind: float, waited: bool) -> None:
    """Such calls take long by themselves: only one that returned soon after the work's end was held by it."""
    t = told()
    t.launch("kernel", at=10, lasts=500)
    t.call("cudaSomethingNew", 20, 511 + behind)
    assert bool(found(t)) is waited


@pytest.mark.parametrize(("part", "waited"), [(0.51, True), (0.49, False)])
def test_a_call_waited_if_work_held_it_for_half_its_time(part: float, waited: bool) -> None:
    """An asynchronous copy that lasted 1,000 µs, for so much of which work before it still ran."""
    t = told()
    t.launch("kernel", at=10, lasts=10 + 1000 * part - 1)
    t.copy(PAGEABLE, at=20, lasts=2)
    t.events[-2]["dur"] = 1000
    assert bool(found(t)) is waited


@pytest.mark.parametrize(("after", "calls"), [(19, [2]), (21, [1])])
def test_a_synchronize_within_20_us_of_a_copy_belongs_to_it(after: float, calls: list[int]) -> None:
    """Outside of every op, where nothing else says that the two are one."""
    t = told()
    t.launch("kernel", at=10, lasts=300)
    t.copy("Memcpy DtoH (Device -> Pinned)", at=20)
    t.call("cudaStreamSynchronize", 21 + after, 320)
    assert [len(p.calls) for p in found(t)] == calls


def blocking(count: int, held: int, late: float = 0.0) -> bool:
    """Whether so many launches, of which some return when their kernel has ended (or as much before), are blocking."""
    t = told()
    for k in range(count):
        at = 10 + 100 * k
        t.launch("kernel", at=at, lasts=50)
        if k < held:
            t.events[-2]["dur"] = 51 - late
    return [p.diagnosis.rule for p in found(t)] == ["launch-blocking"]


def test_launches_block_if_nine_tenths_of_them_do() -> None:
    """92.5 % of forty, not 87.5 %."""
    assert blocking(40, held=37)
    assert not blocking(40, held=35)


def test_twenty_launches_tell_whether_launches_block() -> None:
    """Nineteen may be chance."""
    assert blocking(20, held=20)
    assert not blocking(19, held=19)


@pytest.mark.parametrize(("late", "blocks"), [(0.9, True), (1.1, False)])
def test_a_kernel_may_end_1_us_after_its_launch(late: float, blocks: bool) -> None:
    """By so much the clocks of host and device differ within one launch."""
    assert blocking(30, held=30, late=late) is blocks
