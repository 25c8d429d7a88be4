"""Non-blocking copies are delayed, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from syncscan.capture import delays

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
    monkeypatch.setattr(delays, "_spin", lambda: spun.append(1))
    put_back = delays.delay_copies()
    try:
        result = call(torch.ones(3))
    finally:
        put_back()
    assert (len(spun), len(result)) == (delayed, 3)


def test_nothing_spins_where_there_is_no_device() -> None:
    put_back = delays.delay_copies()
    try:
        assert torch.ones(3).to("cpu", non_blocking=True).sum() == 3
    finally:
        put_back()
