"""A program is held between orders, and the steps of each are timed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from syncscan.capture import device
from syncscan.proof import trial_process
from syncscan.proof.trial_process import LEAD, WARMUP, Channel, Pacer

torch = pytest.importorskip("torch")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that a test counts up."""
    now = [0.0]
    monkeypatch.setattr(trial_process.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(device.time, "perf_counter_ns", lambda: int(now[0] * 1e9))
    return now


def paced(orders: list[int], clock: list[float], step_s: float) -> tuple[int, list[dict[str, object]]]:
    """How many steps a program makes that is given these orders, and what it answers."""
    (read, write), (back, answers) = os.pipe(), os.pipe()
    os.write(write, b"".join(json.dumps({"steps": n}).encode() + b"\n" for n in orders))
    os.close(write)
    channel = Channel(read, answers)
    pacer, steps = Pacer(channel), 0
    while True:
        steps += 1
        clock[0] += step_s
        if not pacer.step():
            break
    channel.close()
    with os.fdopen(back) as lines:
        return steps, [json.loads(line) for line in lines]


def test_the_steps_of_an_order_are_timed(clock: list[float]) -> None:
    """After a warm-up, and a lead in each turn; without further orders the program is to end."""
    steps, answers = paced([5, 3], clock, 0.01)
    assert steps == WARMUP + LEAD + 5 + LEAD + 3
    assert answers[0] == {"ready": True, "lead": LEAD}
    assert [a["mean_us"] for a in answers[1:]] == pytest.approx([10_000, 10_000])
    assert {a["clock"] for a in answers[1:]} == {"host"}


def test_slow_steps_warm_up_for_less_long(clock: list[float]) -> None:
    """Three steps have to do."""
    assert paced([], clock, 2.0)[0] == 3


def test_a_program_whose_orders_end_is_reported_again(clock: list[float]) -> None:
    """One that catches what was to end it asks once more."""
    read, write = os.pipe()
    os.close(write)
    pacer = Pacer(Channel(read, os.open(os.devnull, os.O_WRONLY)))
    assert [pacer.step() for _ in range(WARMUP + 2)] == [True] * (WARMUP - 1) + [False] * 3


def test_what_workers_have_ready_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batches each of three workers, by torch's default; none without workers."""
    assert trial_process.prefetched() == 0
    loader = torch.utils.data.dataloader
    fake = object.__new__(loader._MultiProcessingDataLoaderIter)
    monkeypatch.setattr(type(fake), "__del__", lambda self: None)
    fake._num_workers, fake._prefetch_factor = 3, None
    assert trial_process.prefetched() == 6


torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("call", "delayed"),
    [
        (lambda t: t.to(torch.float64), 0),
        (lambda t: t.to("cpu", torch.float64, True), 1),
        (lambda t: t.to("cpu", non_blocking=True), 1),
        (lambda t: torch.empty(3).copy_(t, True), 1),
        (lambda t: torch.empty(3).copy_(t), 0),
        (lambda t: torch.nn.Linear(3, 3).to("cpu", non_blocking=True)(t), 2),
    ],
)
def test_a_copy_that_does_not_block_is_delayed(
    call: Callable[[Any], Any], delayed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tensor's; what it returns is what it would."""
    spun: list[int] = []
    monkeypatch.setattr(trial_process, "_spin", lambda: spun.append(1))
    put_back = trial_process.delay_copies()
    try:
        result = call(torch.ones(3))
    finally:
        put_back()
    assert (len(spun), len(result)) == (delayed, 3)


def test_nothing_spins_where_there_is_no_device() -> None:
    put_back = trial_process.delay_copies()
    try:
        assert torch.ones(3).to("cpu", non_blocking=True).sum() == 3
    finally:
        put_back()
