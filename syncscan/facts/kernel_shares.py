"""Find the kernels that take most of the device's time, each with the module and the op that launched it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from syncscan.facts.autograd import forward_ops
from syncscan.facts.device_work import communicating
from syncscan.facts.paths import Path, Paths, frames_around
from syncscan.facts.period import step_intervals, work_of_steps
from syncscan.model.arrays import Int64, among
from syncscan.model.slice_names import is_backward_node, is_compiled_graph, is_wrapper
from syncscan.model.trace import NONE, Category, Trace, once

COMPILED = "a compiled graph"
"""Name of Inductor's code around the kernels of a graph."""
MOST = 5
"""Most kernel names, the longest first, whose launches are attributed to modules."""
MOST_STEPS = 8
"""Steps that shares are taken of, the first ones: more say the same."""
_MODULE = "nn.Module: "


class KernelShare(msgspec.Struct, frozen=True, kw_only=True):
    """Time per step of the kernels with one name; means."""

    name: str
    module: tuple[str, ...]
    """The module that launched most of it: the nn.Modules around, outermost first, where frames were recorded; else the
    scopes. In a backward pass, those of the forward op. Empty if unknown."""
    op: str
    """The module and op that launched most of it, as a reader would name them; empty if unknown."""
    us: float
    share: float
    """Part of device time in a step, with all streams added up and collectives left out."""
    per_step: float
    others: int
    """Number of other modules and ops that launched such kernels."""


def kernel_shares(trace: Trace, most: int) -> tuple[KernelShare, ...]:
    """Return the kernels that take most of a step, by name, the longest first."""
    return _all_shares(trace)[:most]


@once
def _all_shares(trace: Trace) -> tuple[KernelShare, ...]:
    s, steps = trace.slices, step_intervals(trace)[:MOST_STEPS]
    rows = work_of_steps(trace, steps)
    rows = rows[~among(rows, trace.device_rows[communicating(trace)])]
    total = int((s.end[rows] - s.ts[rows]).sum())
    if not total or not steps:
        return ()
    long = _longest_names(trace, rows)
    launched: dict[str, dict[tuple[tuple[str, ...], str], list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, by in zip(long.tolist(), _launchers(trace, long), strict=True):
        launched[trace.name(row)][by].append(int(s.end[row] - s.ts[row]))
    shares = [_share(name, by, total, len(steps)) for name, by in launched.items()]
    return tuple(sorted(shares, key=lambda share: -share.us))


def _share(name: str, by: Mapping[tuple[tuple[str, ...], str], Sequence[int]], total: int, steps: int) -> KernelShare:
    module, op = max(by, key=lambda launcher: sum(by[launcher]))
    took = sum(map(sum, by.values()))
    return KernelShare(
        name=name,
        module=module,
        op=op,
        us=took / steps / 1e3,
        share=took / total,
        per_step=sum(map(len, by.values())) / steps,
        others=len(by) - 1,
    )


def _longest_names(trace: Trace, rows: Int64) -> Int64:
    """Return those of these rows that are kernels with the names that take longest in total."""
    s = trace.slices
    kernels = rows[s.category[rows] == int(Category.KERNEL)]
    took = np.bincount(s.name[kernels], weights=s.end[kernels] - s.ts[kernels], minlength=len(trace.strings))
    names = np.argsort(-took, kind="stable")[:MOST]
    long: Int64 = kernels[among(s.name[kernels], names)]
    return long


def _launchers(trace: Trace, kernels: Int64) -> list[tuple[tuple[str, ...], str]]:
    calls, paths = trace.calls_of(kernels), trace.cached(Paths)
    chains = [paths.to(call) for call in calls.tolist()]
    forward = _forward(trace, chains)
    at = np.where(forward != NONE, forward, calls)
    led = [paths.to(row) if row != NONE else chain for row, chain in zip(forward.tolist(), chains, strict=True)]
    s, has_call = trace.slices, at != NONE
    rows = np.where(has_call, at, 0)
    frames = frames_around(trace, s.track[rows], s.ts[rows], s.end[rows]) if len(rows) else []
    return [
        (_module(names if is_known else (), chain), _op(own))
        for names, is_known, chain, own in zip(frames, has_call.tolist(), led, chains, strict=True)
    ]


def _forward(trace: Trace, chains: Sequence[Path]) -> Int64:
    """Return for each chain in a backward pass the row of the forward op, NONE for others."""
    nodes = [
        next((row for row, name in zip(c.ops, c.names.ops, strict=True) if is_backward_node(name)), NONE)
        for c in chains
    ]
    rows = np.array(nodes, np.int64)
    forward = np.full(len(rows), NONE, np.int64)
    within = rows != NONE
    if within.any():
        forward[within] = forward_ops(trace, rows[within])
    return forward


def _module(frames: Sequence[str], chain: Path) -> tuple[str, ...]:
    modules = tuple(name.removeprefix(_MODULE) for name in frames if name.startswith(_MODULE))
    return modules or tuple(name for name in chain.names.scopes if not is_compiled_graph(name))


def _op(chain: Path) -> str:
    """Return the outermost op that does work itself; without one the innermost that holds it, or the scope."""
    if chain.names.worker != NONE:
        worker = chain.names.ops[chain.names.worker]
        return COMPILED if is_compiled_graph(worker) else worker
    held = next((name for name in reversed(chain.names.ops) if is_wrapper(name)), "")
    return COMPILED if is_compiled_graph(held) else held
