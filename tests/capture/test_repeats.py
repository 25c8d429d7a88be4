"""The rounds that count as steps where no optimizer steps and Python reports no single loops."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from torch import nn

from syncscan.capture import repeats
from syncscan.capture.repeats import Repeats


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
    monkeypatch.setattr(repeats, "can_watch", lambda: False)
    monkeypatch.setattr(repeats, "QUIET_S", 0.2)
    monkeypatch.setattr(repeats, "COUNT_S", 0.3)
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
