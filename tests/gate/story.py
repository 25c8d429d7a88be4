"""Traces of small programs for the gate's tests: each sync a line, in a scope, with the line that capture recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from syncscan.api import analyze_trace
from syncscan.model.analysis import Analysis
from tests.builder import TraceBuilder


class Sync(msgspec.Struct, frozen=True):
    """One sync of each step."""

    op: str = "aten::item > aten::_local_scalar_dense"
    scope: str = "loss"
    file: str = "/home/a/project/train.py"
    line: int = 0
    """0 for a trace without lines."""
    function: str = "step"
    waits: float | None = None
    steps: Sequence[int] | None = None
    """The steps that have it, all by default."""


def program(
    *syncs: Sync, steps: int = 3, lasts: float = 1000, jitter: Callable[[int], float] = lambda k: 0
) -> Analysis:
    """The analysis of a program that makes these syncs in each step."""
    return analyze_trace(trace_of(*syncs, steps=steps, lasts=lasts, jitter=jitter).trace())


def trace_of(
    *syncs: Sync, steps: int = 3, lasts: float = 1000, jitter: Callable[[int], float] = lambda k: 0
) -> TraceBuilder:
    """The trace; in `scope` a `#` stands for the step's number."""
    t = TraceBuilder()
    start = 0.0
    for k in range(steps):
        length = lasts + jitter(k)
        with t.step(start, start + length):
            at = start + 10
            t.launch("gemm", at=at, lasts=30)
            for sync in syncs:
                if sync.steps is None or k in sync.steps:
                    at = _add(t, sync, at + 20, k)
        start += length
    return t


def _add(t: TraceBuilder, sync: Sync, at: float, k: int) -> float:
    scope = sync.scope.replace("#", str(k + 100))
    with t.scope(scope, at, at + 45 + (sync.waits or 0)):
        end = t.sync(sync.op, at=at + 2, wait=sync.waits)
        if sync.line:
            t.exact(at + 6.5, (sync.file, sync.line, sync.function), ("/home/a/project/main.py", 3, "<module>"))
    return max(end, at + 45 + (sync.waits or 0))
