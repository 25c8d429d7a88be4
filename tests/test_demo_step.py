"""The demo's step in its four versions."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.append(str(Path(__file__).parents[1] / "sample_traces"))
demo_step = importlib.import_module("demo_step")


def losses(version: int) -> list[float]:
    """The loss of the same network and batch, before each of three steps."""
    torch.manual_seed(0)
    seen: list[float] = []
    __call__ = demo_step._Loss.__call__

    def watched(self: object, predicted: object, target: object) -> object:
        loss = __call__(self, predicted, target)
        seen.append(loss.item())
        return loss

    demo_step._Loss.__call__ = watched
    try:
        step = demo_step.build("cpu", demo_step.Size(1, 32, 2), version)
        for _ in range(3):
            step()
    finally:
        demo_step._Loss.__call__ = __call__
    return seen


def test_every_version_learns_the_same() -> None:
    """Each version leaves out a wait, never a part of the loss."""
    expected = losses(0)
    for version in (1, 2, 3):
        assert losses(version) == pytest.approx(expected, rel=1e-4)
