"""Builds traces of repeated steps from a plan: what the host does in a step, line by line, for the what-if tests."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from tests.builder import TraceBuilder

Item = tuple[str, float]
"""("work", µs of host time), ("launch", µs of device time), ("side", the same on stream 13), ("read", 0): a read-back
that waits, ("wait", 0): an explicit device synchronize."""
WARM_UP = 2


def told(plan: Sequence[Item], steps: int = 4, warm_up: int = WARM_UP) -> TraceBuilder:
    """A trace of some steps that each follow the plan; every wait lasts as long as the work before it demands.

    A few more go before them without a mark, as warm-up does: the first marked step finds the device as the others do.
    """
    t = TraceBuilder()
    now = 0.0
    for number in range(-warm_up, steps):
        begin = now
        now += 1
        for place, (kind, amount) in enumerate(plan):
            start = now
            now = _tell(t, kind, amount, now)
            t.scope(f"{kind}{place}", start, now)
        now += 1
        if number >= 0:
            t.step(begin, now)
    return t


def _tell(t: TraceBuilder, kind: str, amount: float, now: float) -> float:
    if kind == "work":
        return now + amount
    if kind == "read":
        end = t.sync("aten::_local_scalar_dense", at=now + 1)
        t.op("aten::item", now, end + 1)
        return end + 1
    if kind == "wait":
        return t.synchronize(at=now)
    t.launch(f"kernel {amount}", at=now, lasts=amount, stream=13 if kind == "side" else 7)
    return now + 2


def analyzed(plan: Sequence[Item], steps: int = 4, step_ms: float | None = None) -> Analysis:
    """The analysis of such a trace, with gains."""
    return api.analyze_trace(told(plan, steps).trace(), step_ms=step_ms)


def real(analysis: Analysis) -> list[Finding]:
    """The findings of the marked steps, in the order of the analysis."""
    return [f for f in analysis.findings if not f.intended]


def profiled(analysis: Analysis) -> Analysis:
    """Build the story with a step that takes as long without the profiler: nothing is left to estimate."""
    return api.analyze_trace(analysis.trace, step_ms=analysis.step.observed_us / 1e3)
