"""Find what a network's calls are given, leave behind and repeat, as far as it is in the way of CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from syncscan.facts.network import OutermostOp, Pass, is_product, ops_of, passes
from syncscan.model.finding import Finding, SyncPoint
from syncscan.model.interval import Interval
from syncscan.model.obstacles import Obstacle, ObstacleKind
from syncscan.model.trace import NONE, Trace
from syncscan.whatif.compile_reach import CompileBreaks
from syncscan.whatif.network_calls import LEAST_PRODUCTS, calls_of_one_network

NUMBER = 8
"""Bytes of one number: a compile takes it in as such, whether the host keeps it or not."""
LOOKED_AT = 3
"""How many steps are looked at for repeated calls, all of which have them."""


def host_inputs(trace: Trace, steps: Sequence[Interval], findings: Sequence[Finding]) -> Obstacle | None:
    """Return whether the network copies tensors of the host to the device, by the modules around copies that wait.

    Args:
        trace: the trace whose steps they are.
        steps: from one's begin to the next one's.
        findings: all syncs of the trace.
    """
    inner = (o.sync for f in findings if f.where.module for o in f.occurrences)
    count = sum(_copies_tensor(trace, sync) for sync in inner if any(step.holds(sync.ts) for step in steps))
    return _per_step(ObstacleKind.HOST_INPUTS, count, steps)


def _copies_tensor(trace: Trace, sync: SyncPoint) -> bool:
    """Return whether this sync is of a copy of more than one number to the device."""
    rows = trace.device_rows[np.isin(trace.device_calls, sync.calls)].tolist()
    return any("HtoD" in trace.name(row) and trace.slices.bytes[row] > NUMBER for row in rows)


def unused_gradients(trace: Trace, steps: Sequence[Interval]) -> Obstacle | None:
    """Return whether forward passes record gradients that no backward pass of any step uses.

    Autograd gives each op that it follows a number, and the op's backward node the same one.
    """
    all_ops = [op for step in steps for op in ops_of(trace, step)]
    used = {number for op in all_ops if op.backward for number in _numbers(trace, op)}
    products = [op for op in all_ops if not op.backward and not op.of_optimizer and any(map(is_product, op.inner))]
    unused = sum(run for run in _unused_runs(trace, products, used) if run >= LEAST_PRODUCTS)
    count = round(unused / len(steps))
    kind = ObstacleKind.UNUSED_GRADIENTS
    return Obstacle(kind, count, round(len(products) / len(steps))) if count >= LEAST_PRODUCTS else None


def _numbers(trace: Trace, op: OutermostOp) -> set[int]:
    """Return autograd's numbers of an op and of those in it that launch."""
    rows = {row for leaf in op.leaf if leaf != NONE for row in (leaf, *trace.ancestors(leaf))}
    return {int(trace.slices.sequence[row]) for row in rows} - {NONE}


def _unused_runs(trace: Trace, products: Sequence[OutermostOp], used: set[int]) -> Iterator[int]:
    """Yield how many products in a row autograd follows for nothing, each with a number of its own."""
    run, last = 0, NONE
    for op in products:
        numbers = _numbers(trace, op)
        if numbers and not numbers & used and max(numbers) > last:
            run += 1
        else:
            yield run
            run = 0
        last = max(numbers, default=NONE)
    yield run


def repeated_calls(trace: Trace, steps: Sequence[Interval], findings: Sequence[Finding]) -> Obstacle | None:
    """Return whether each step calls one network several times, before a backward pass or without any."""
    waits = CompileBreaks(trace, findings, frozenset()).outside
    of_steps = [passes(trace, step) for step in steps[:LOOKED_AT]]
    trains = any(one.backward for each in of_steps for one in each)
    counts = [max((_calls(trace, one, waits) for one in each if not one.backward), default=1) for each in of_steps]
    least = min(counts)
    return Obstacle(ObstacleKind.FORWARDS if trains else ObstacleKind.CALLS, least) if least > 1 else None


def _calls(trace: Trace, one: Pass, waits: Sequence[int]) -> int:
    begin, end = one.interval
    return calls_of_one_network(trace, one.ops, [at for at in waits if begin <= at < end])


def _per_step(kind: ObstacleKind, count: int, steps: Sequence[Interval]) -> Obstacle | None:
    seen = round(count / len(steps))
    return Obstacle(kind, seen) if seen else None
