"""List the pairs of racing and right programs, and make their tensors."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from syncscan.model.race import RaceKind

torch: Any = importlib.import_module("torch")

Spin = Callable[[], None]
Program = Callable[[Spin, float], Any]
PAIRS: list[tuple[RaceKind, Program, Program]] = []
"""Kind, a program that races, and one that looks like it and doesn't."""
READ, WRITE = RaceKind.READ_BEFORE_COPY, RaceKind.WRITE_BEFORE_COPY
STREAMS, FREED = RaceKind.UNORDERED_STREAMS, RaceKind.FREED_IN_USE


def pair(kind: RaceKind, right: Program) -> Callable[[Program], Program]:
    """Note a wrong program beside its right form."""

    def noted(wrong: Program) -> Program:
        PAIRS.append((kind, wrong, right))
        return wrong

    return noted


def device(value: float, n: int = 64) -> Any:
    """Return a tensor on the device, filled on the current stream."""
    return torch.zeros(n, device="cuda").add_(value)


def pinned(value: float = 0.0, n: int = 64) -> Any:
    """Return a tensor in pinned memory."""
    return torch.full((n,), value).pin_memory()


def awaited(x: Any) -> Any:
    """Return a tensor's mean, once all streams are done."""
    torch.cuda.synchronize()
    return x.mean().item()
