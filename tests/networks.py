"""Small networks in a trace: ops that each launch one kernel, for the tests of what a compile leaves of them."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.interval import Interval
from syncscan.model.trace import Trace
from syncscan.whatif.compile_reach import Reach, reach
from tests.builder import TraceBuilder

LAYER = ("aten::addmm", "aten::gelu")
KERNELS = {"aten::addmm": "gemm", "aten::convolution": "cudnn_conv", "aten::softmax": "softmax_warp_forward"}
"""Names of kernels of some ops; others launch an elementwise kernel."""
OP = 8
"""How long an op takes of the host, µs."""


def op(t: TraceBuilder, name: str, at: float, lasts: float = 5, kernel: str = "", blocks: int = 0) -> None:
    """An op that takes `OP` µs of the host and launches one kernel."""
    with t.op(name, at, at + OP):
        t.launch(kernel or KERNELS.get(name, "elementwise_kernel"), at=at + 2, lasts=lasts, blocks=blocks)


def ops(t: TraceBuilder, names: Sequence[str], start: float, every: float = 10, blocks: int = 0) -> float:
    """Ops one after the other; returns when the next one would begin."""
    for name in names:
        op(t, name, start, blocks=blocks)
        start += every
    return start


def backward(t: TraceBuilder, node: str, inner: str, at: float) -> None:
    """A backward node that launches one kernel in an op of its own."""
    with t.op(f"autograd::engine::evaluate_function: {node}", at, at + OP), t.op(inner, at + 1, at + OP - 1):
        t.launch(KERNELS.get(inner, "elementwise_kernel"), at=at + 2, lasts=5)


def read(t: TraceBuilder, at: float, line: int = 7, function: str = "forward", module: str = "Net") -> float:
    """A read-back in a module's function at this line, as capture records it; returns when it ends."""
    t.exact(at + 4.5, ("net.py", line, function), module=module)
    return t.sync("aten::item > aten::_local_scalar_dense", at=at)


def intervals(trace: Trace) -> list[Interval]:
    """The steps of a trace."""
    return [Interval(step.ts, step.end) for step in trace.main_steps]


def reached(t: TraceBuilder, remove: bool = False) -> tuple[Analysis, Reach]:
    """Return the parts of a trace's steps that a compile reaches with all of its syncs, or with none of them."""
    analysis = api.analyze_trace(t.trace())
    removed = frozenset(f.id for f in analysis.findings) if remove else frozenset()
    return analysis, reach(analysis.trace, intervals(analysis.trace), analysis.findings, removed)


def launch_bound(reads: int = 0, layers: int = 50, kernel_us: float = 5) -> Analysis:
    """Steps of a network whose first rounds each read a value in a loop; the last kernel may be a long one."""
    t = TraceBuilder()
    lasts = 40.0 * layers
    for start in t.steps(4, lasts=lasts):
        at = start + 10.0
        for number in range(layers // 5):
            if number < reads:
                at = read(t, at) + 1
            at = ops(t, LAYER * 5, at)
        if kernel_us > 5:
            with t.op("aten::addmm", at, at + 8):
                t.launch("gemm", at=at + 2, lasts=kernel_us)
    return api.analyze_trace(t.trace(), step_ms=lasts / 1e3)
