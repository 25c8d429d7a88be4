"""Guessed steps begin where the program's loop begins, and are whole."""

from __future__ import annotations

import pytest

from tests.builder import MAIN, TraceBuilder

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
ROUND = 20_000
"""Time from one round's begin to the next one's, µs."""


def loop(
    rounds: int, *, head: str = LOADER, first_head: bool = True, thread: str = "python", last_head: bool = False
) -> TraceBuilder:
    """A loop that takes 15 ms for its batch, launches for 1 ms and has its backward pass run on another thread.

    Args:
        rounds: how many.
        head: the range of the batch.
        first_head: whether that of the first round was recorded.
        thread: the name of the backward thread.
        last_head: whether another batch was taken behind the last round.
    """
    t = TraceBuilder()
    for k in range(rounds):
        at = float(ROUND * k)
        if k or first_head:
            t.scope(head, at, at + 15_000)
        for j in range(2):
            with t.op("aten::linear", at + 16_000 + 100 * j, at + 16_090 + 100 * j):
                t.launch("gemm", at=at + 16_010 + 100 * j, lasts=50)
        with t.thread(thread, MAIN + 1):
            for j in range(6):
                t.backward("MmBackward0", at + 16_500 + 100 * j, at + 16_590 + 100 * j)
                t.launch("gemm", at=at + 16_510 + 100 * j, lasts=50)
        with t.op("aten::add_", at + 18_000, at + 18_100):
            t.launch("sgd", at=at + 18_010, lasts=50)
    if last_head:
        t.scope(head, float(ROUND * rounds), float(ROUND * rounds + 15_000))
    return t


def bounds(t: TraceBuilder) -> list[tuple[float, float]]:
    """When the steps begin and end, µs."""
    return [(step.ts / 1e3, step.end / 1e3) for step in t.trace().steps]


def rounds(first: int, behind: int) -> list[tuple[float, float]]:
    """Begin and end of each of these rounds."""
    return [(float(ROUND * k), float(ROUND * (k + 1))) for k in range(first, behind)]


@pytest.mark.parametrize("thread", ["python", "", "pt_autograd_0"])
@pytest.mark.parametrize("head", [LOADER, "my own batch"])
def test_a_step_begins_with_its_batch(thread: str, head: str) -> None:
    """Five rounds are five steps, whatever the backward thread is called and the range of the batch."""
    assert bounds(loop(5, thread=thread, head=head)) == rounds(0, 5)


def test_a_round_without_its_loader_is_no_step() -> None:
    """The recording began behind the first one."""
    assert bounds(loop(5, first_head=False)) == rounds(1, 5)


def test_the_next_loader_ends_the_last_step() -> None:
    """Though no launch of that round was recorded."""
    assert bounds(loop(4, last_head=True)) == rounds(0, 4)


def test_a_batch_that_another_scope_holds_counts() -> None:
    """The step begins with the outermost range."""
    t = loop(4)
    for k in range(4):
        t.scope("fetch", ROUND * k - 10, ROUND * k + 15_010)
    assert [begin for begin, _ in bounds(t)] == [ROUND * k - 10 for k in range(4)]


def test_of_several_batches_a_step_begins_with_the_one_behind_the_optimizer() -> None:
    """Gradients are accumulated over two: the sequence could begin at either."""
    t = TraceBuilder()
    for k in range(9):
        at = float(1000 * k)
        t.scope(LOADER, at, at + 500)
        with t.op("aten::linear", at + 600, at + 700):
            t.launch("gemm", at=at + 610, lasts=20)
        if k % 2 == 0:
            with t.scope("Optimizer.step#SGD.step", at + 800, at + 900):
                t.launch("sgd", at=at + 810, lasts=20)
    assert [begin for begin, _ in bounds(t)] == [1000.0, 3000.0, 5000.0, 7000.0]


def test_a_loop_inside_the_loaders_is_no_step() -> None:
    """Twelve layers in each of two passes: what repeats most of the time isn't the program's loop."""
    t = TraceBuilder()
    for k in range(2):
        t.scope(LOADER, 20_000 * k, 20_000 * k + 100)
        for j in range(12):
            with t.op("aten::linear", 20_000 * k + 1000 * j + 200, 20_000 * k + 1000 * j + 300):
                t.launch("layer", at=20_000 * k + 1000 * j + 210, lasts=900)
    assert t.trace().steps == ()
