"""The rounds that count as steps where no optimizer steps and Python reports no single loops."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest
import torch
from torch import nn

from syncscan.capture import repeated_loop
from syncscan.capture.repeated_loop import Repeats, Rounds, can_watch
from syncscan.source.loops import LoopLines, Loops


def generate(model: nn.Module, words: torch.Tensor) -> None:
    for _ in range(3):
        model(words)


def evaluate(model: nn.Module, done: Callable[[], bool]) -> int:
    """Evaluate batches, generate three words after each, and return how many batches that were."""
    batches, words = 0, torch.ones(1, 4)
    while not done():
        model(words)
        generate(model, words)
        batches += 1
    return batches


def test_a_model_s_outermost_call_ends_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """One model evaluates a batch and generates three words: a step is a batch, not each of the four calls."""
    monkeypatch.setattr(repeated_loop, "can_watch", lambda: False)
    monkeypatch.setattr(repeated_loop, "QUIET_S", 0.2)
    monkeypatch.setattr(repeated_loop, "COUNT_S", 0.3)
    chosen: list[str] = []
    rounds: list[float] = []
    model, until = nn.Linear(4, 4), time.monotonic() + 300
    search = Repeats(chosen.append, lambda: rounds.append(time.monotonic()), lambda sentence: None)
    search.start()
    try:
        evaluate(model, lambda: bool(rounds) or time.monotonic() > until)
        rounds.clear()
        batches = evaluate(model, lambda: len(rounds) >= 5)
    finally:
        search.close()
    line = evaluate.__code__.co_firstlineno + 4
    assert (chosen, len(rounds), batches) == ([f"a call of Linear at test_repeats.py:{line}"], 5, 5)


pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells of single jumps since 3.12")


def for_loop(count: int, act: Callable[[int], Any] = lambda number: None) -> None:
    for number in range(count):
        for inner in range(3):
            if inner == 1:
                continue
        if number % 2:
            continue
        act(number)


def while_loop(count: int) -> None:
    while count:
        count -= 1
        with memoryview(b""):
            if count % 3 == 0:
                continue


def outermost(function: Callable[..., Any]) -> tuple[CodeType, LoopLines]:
    first = inspect.getsourcelines(function)[1]
    return function.__code__, Loops().around(__file__, first + 2)[0]


@pytest.mark.parametrize("function", [for_loop, while_loop])
def test_each_round_is_reported_once(function: Callable[[int], None]) -> None:
    """Rounds that `continue` ends count too; those of an inner loop don't."""
    ended: list[int] = []
    rounds = Rounds([outermost(function)], ended.append)
    assert rounds.start()
    function(10)
    rounds.close()
    function(10)
    assert ended == [0] * 10


def test_a_loop_can_be_watched_from_its_middle_on() -> None:
    """A capture learns of it while it runs."""
    ended: list[int] = []
    rounds = Rounds([outermost(for_loop)], ended.append)
    for_loop(10, lambda number: rounds.start() if number == 4 else None)
    rounds.close()
    assert len(ended) == 6


def test_what_is_raised_ends_the_loop() -> None:
    """So a script is ended when its capture is complete."""

    def stop(number: int) -> None:
        raise KeyboardInterrupt

    rounds = Rounds([outermost(for_loop)], stop)
    rounds.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            for_loop(10)
    finally:
        rounds.close()
    assert can_watch()
