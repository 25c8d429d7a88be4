"""Times show pinned memory that is filled while a copy from it runs; what speaks for another buffer is heeded."""

from __future__ import annotations

from collections.abc import Callable

from syncscan.facts.refills import Refill, refills_of
from tests.builder import TraceBuilder

PINNED, PAGEABLE = "Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pageable -> Device)"


def nothing(t: TraceBuilder, at: float) -> None:
    """Between a copy and the next fill the host does nothing."""


def loop(
    between: Callable[[TraceBuilder, float], None] = nothing,
    *,
    fill: str = "aten::copy_",
    copy: str = PINNED,
    busy: float = 500,
) -> list[Refill]:
    """Three steps of 100 µs: the host fills a tensor, copies it to a device that is busy, and goes on."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        with t.op(fill, start + 60, start + 65):
            pass
        t.launch("work", at=start + 66, lasts=busy)
        with t.op("aten::to", start + 70, start + 80), t.op("aten::copy_", start + 71, start + 79):
            t.copy(copy, at=start + 72, lasts=2)
        between(t, start + 85)
    return list(refills_of(t.trace()))


def call(name: str) -> Callable[[TraceBuilder, float], None]:
    def made(t: TraceBuilder, at: float) -> None:
        t.call(name, at, at + 1)

    return made


def op(name: str) -> Callable[[TraceBuilder, float], None]:
    def made(t: TraceBuilder, at: float) -> None:
        t.op(name, at, at + 1)

    return made


def test_memory_that_is_filled_while_its_copy_waits_for_the_device_is_reported() -> None:
    """Each step's fill comes while the copy of the step before still runs: twice in three steps."""
    trace_of_fills = loop()
    assert [refill.times for refill in trace_of_fills] == [2]


def test_a_copy_that_is_done_by_then_is_no_refill() -> None:
    assert loop(busy=1) == []


def test_pageable_memory_is_taken_when_its_call_returns() -> None:
    assert loop(copy=PAGEABLE) == []


def test_a_wait_for_an_event_or_a_question_speaks_for_another_buffer() -> None:
    """Two buffers in turn, each with its event: the copy that still runs is the other's."""
    assert loop(call("cudaEventSynchronize")) == loop(call("cudaEventQuery")) == []


def test_memory_that_is_pinned_or_made_anew_is_another_buffer() -> None:
    """Pinned memory that the allocator hands out is in use by no copy."""
    assert loop(op("aten::pin_memory")) == []


def test_ops_that_add_to_a_tensor_fill_none() -> None:
    """As an optimizer counts its steps on the host, before the next batch is copied."""
    assert loop(fill="aten::add_") == loop(fill="aten::mul") == []


def test_an_op_that_launches_works_on_the_device() -> None:
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        with t.op("aten::copy_", start + 60, start + 66):
            t.launch("copy", at=start + 61, lasts=500)
        with t.op("aten::copy_", start + 70, start + 80):
            t.copy(PINNED, at=start + 72, lasts=2)
    assert refills_of(t.trace()) == ()


def test_another_op_between_fill_and_copy_says_nothing() -> None:
    """Which tensor was filled then isn't known."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        t.op("aten::fill_", start + 50, start + 55)
        t.launch("work", at=start + 56, lasts=500)
        t.op("aten::stack", start + 60, start + 65)
        with t.op("aten::copy_", start + 70, start + 80):
            t.copy(PINNED, at=start + 72, lasts=2)
    assert refills_of(t.trace()) == ()


def test_a_site_with_one_wait_is_passed_over_whole() -> None:
    """Events that were never recorded aren't waited for: the first rounds of a ring of buffers show no wait."""
    waited = iter((False, True, True))

    def later(t: TraceBuilder, at: float) -> None:
        if next(waited):
            t.call("cudaEventSynchronize", at, at + 1)

    assert loop(later) == []


def test_two_sites_are_two_refills() -> None:
    """By the scopes around them."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=200):
        for n, name in enumerate(("images", "labels")):
            at = start + 100 * n
            with t.scope(name, at + 10, at + 90):
                t.op("aten::fill_", at + 50, at + 55)
                t.launch("work", at=at + 60, lasts=900)
                with t.op("aten::copy_", at + 70, at + 80):
                    t.copy(PINNED, at=at + 72, lasts=2)
    assert [refill.times for refill in refills_of(t.trace())] == [2, 2]
