"""The demo's step in its four versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.capture import demo_step

torch = pytest.importorskip("torch")


def losses(version: int) -> list[float]:
    """The loss of the same network and batch, before each of three steps."""
    torch.manual_seed(0)
    seen: list[float] = []
    __call__ = demo_step._Loss.__call__

    def watched(self: object, predicted: object, target: object) -> object:
        loss = __call__(self, predicted, target)  # type: ignore[arg-type]
        seen.append(loss.item())
        return loss

    demo_step._Loss.__call__ = watched  # type: ignore[method-assign]
    try:
        step = demo_step.build("cpu", demo_step.Size(1, 32, 2), version)
        for _ in range(3):
            step()
    finally:
        demo_step._Loss.__call__ = __call__  # type: ignore[method-assign]
    return seen


def test_every_version_learns_the_same() -> None:
    """Each version leaves out a wait, never a part of the loss."""
    expected = losses(0)
    for version in (1, 2, 3):
        assert losses(version) == pytest.approx(expected, rel=1e-4)


def test_the_capture_records_three_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine's GPU, or its CPU; of a smaller step, for the sake of busy machines."""
    monkeypatch.setattr(demo_step, "HOST", demo_step.Size(1, 16, 1))
    path = demo_step.capture(str(tmp_path))
    assert path.parent == tmp_path
    assert path.name.startswith("maskedloss.")
