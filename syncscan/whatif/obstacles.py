"""Find what keeps a step's network from being compiled, or from being held by CUDA graphs.

What a recording can't show, outputs that live over calls and `torch.inference_mode`, is judged from the program's
source, where that is at hand (`attribute/source_obstacles.py`).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from syncscan.facts.network import OutermostOp, Pass, is_product, ops_of, passes
from syncscan.model.finding import Finding, Removal, SyncPoint
from syncscan.model.interval import Interval
from syncscan.model.states import Obstacle, ObstacleKind
from syncscan.model.trace import NONE, Category, Trace
from syncscan.whatif.compile_reach import CompileBreaks
from syncscan.whatif.network_calls import LEAST_PRODUCTS, alike, calls_of_one_network

CHANGED = 0.02
"""The least part of a network's kernels that have another size in some step where its shapes change. (All have the same
in 63 recordings of steps that don't change; 0.2 to 0.98 have another in seven that do.)"""
WRITES = ("aten::copy_", "aten::index_copy_", "aten::index_put_", "aten::index_fill_", "aten::scatter_")
"""Ops that write into a tensor that they are given, where no other op calls them: in `x.to(dtype)`, `aten::to` calls
`aten::copy_`."""
_TWICE = re.compile(r"\w*?(BackwardBackward\d*|Backward\D*Backward\d+)")
"""A node of autograd's graph for a gradient's own gradient: `TanhBackwardBackward0`, `SoftmaxBackwardDataBackward0`."""
_Kernels: TypeAlias = Counter[tuple[int, int]]
"""Kernels by name and number of blocks."""


def obstacles(
    trace: Trace,
    steps: Sequence[Interval],
    findings: Sequence[Finding],
    breaking: Sequence[Finding],
    in_source: Sequence[Obstacle] = (),
) -> tuple[Obstacle, ...]:
    """Return the obstacles, the most severe first."""
    if not steps:
        return ()
    found = (
        _double_backward(trace, steps),
        _shapes(trace, steps, breaking) or _data_sizes(trace, steps, breaking),
        _accumulation(trace, steps),
        unused_gradients(trace, steps),
        _written_inputs(trace, steps),
        host_inputs(trace, steps, findings),
        repeated_calls(trace, steps, findings),
    )
    return (*(obstacle for obstacle in found if obstacle), *in_source)


def _double_backward(trace: Trace, steps: Sequence[Interval]) -> Obstacle | None:
    rows = trace.where(lambda name: _TWICE.fullmatch(name) is not None, Category.CPU_OP)
    ts = trace.slices.ts[rows]
    count = sum(int(step.holds(at)) for step in steps for at in ts.tolist())
    return _per_step(ObstacleKind.DOUBLE_BACKWARD, count, steps)


def _shapes(trace: Trace, steps: Sequence[Interval], breaking: Sequence[Finding]) -> Obstacle | None:
    """Return whether sizes change that no sync of the network's own reads: those of its inputs."""
    changed, count = _changed(trace, steps, _first_reads(steps, breaking))
    return Obstacle(ObstacleKind.SHAPES, changed, count) if changed > CHANGED * count else None


def _data_sizes(trace: Trace, steps: Sequence[Interval], breaking: Sequence[Finding]) -> Obstacle | None:
    """Return whether the network reads sizes: ops that say so, or kernels that change behind one of its syncs only."""
    reads = [f for f in breaking if f.removal is Removal.KERNELS]
    if not reads:
        before, _ = _changed(trace, steps, _first_reads(steps, breaking))
        changed, count = _changed(trace, steps, {})
        if not breaking or changed - before <= CHANGED * count:
            return None
    return Obstacle(ObstacleKind.DATA_SIZES, round(sum(f.per_step for f in reads or breaking)))


def _first_reads(steps: Sequence[Interval], breaking: Sequence[Finding]) -> dict[Interval, int]:
    """Return when the network waits first, in each of the steps in which it does."""
    times = sorted(o.ts for f in breaking for o in f.occurrences)
    firsts = ((step, next((at for at in times if step.holds(at)), None)) for step in steps)
    return {step: at for step, at in firsts if at is not None}


def _changed(trace: Trace, steps: Sequence[Interval], ends: dict[Interval, int]) -> tuple[int, int]:
    """Return how many of the network's kernels that all steps have by name have another size in some, and of how many.

    Where not all of a step counts, `ends` has up to when.
    """
    sized = [_kernels(trace, step, ends.get(step, step.end)) for step in steps]
    by_name = [_names(kernels) for kernels in sized]
    alike, count = (sum(_shared(counters).values()) for counters in (sized, by_name))
    return count - alike, count


def _kernels(trace: Trace, step: Interval, end: int) -> _Kernels:
    s = trace.slices
    ops = (op for one in passes(trace, step) for op in one.ops if op.begin < end)
    rows = (row for op in ops for row in op.work if s.category[row] == int(Category.KERNEL) and s.blocks[row] != NONE)
    return Counter((int(s.name[row]), int(s.blocks[row])) for row in rows)


def _names(kernels: _Kernels) -> _Kernels:
    by_name: _Kernels = Counter()
    for (name, _), count in kernels.items():
        by_name[name, NONE] += count
    return by_name


def _shared(kernels: Sequence[_Kernels]) -> _Kernels:
    shared = kernels[0]
    for other in kernels[1:]:
        shared &= other
    return shared


def _accumulation(trace: Trace, steps: Sequence[Interval]) -> Obstacle | None:
    """Return whether a network runs backward several times before an optimizer's step."""
    most = max(_alike_passes(trace, run) for run in _between_optimizers(trace, steps))
    return Obstacle(ObstacleKind.ACCUMULATION, most) if most > 1 else None


def _between_optimizers(trace: Trace, steps: Sequence[Interval]) -> Iterator[list[list[OutermostOp]]]:
    """Yield the backward passes, each by its ops, that come before each optimizer's step."""
    run = list[list[OutermostOp]]()
    ops = (op for step in steps for op in ops_of(trace, step))
    for kind, group in itertools.groupby(ops, lambda op: 2 if op.of_optimizer else int(op.backward)):
        stretch = list(group)
        if kind == 2:
            yield run
            run = []
        elif kind == 1 and any(op.heavy for op in stretch):
            run.append(stretch)
    yield []


def _alike_passes(trace: Trace, run: Sequence[Sequence[OutermostOp]]) -> int:
    """Return how many of these backward passes launch the same kernels as the last one does."""
    names = [Counter(int(trace.slices.name[row]) for op in stretch for row in op.work) for stretch in run]
    if not names:
        return 0
    last = names[-1]
    return sum(alike(one, last) for one in names)


def _written_inputs(trace: Trace, steps: Sequence[Interval]) -> Obstacle | None:
    """Return whether a network that isn't trained writes into tensors: a cache of keys and values."""
    written = 0
    for step in steps:
        runs = passes(trace, step)
        if not any(one.backward for one in runs):
            written += sum(op.name in WRITES and _on_device(trace, op) for one in runs for op in one.ops)
    return _per_step(ObstacleKind.WRITTEN_INPUTS, written, steps)


def _on_device(trace: Trace, op: OutermostOp) -> bool:
    return all("HtoD" not in trace.name(row) and "DtoH" not in trace.name(row) for row in op.work)


NUMBER = 8
"""Bytes of one number: a compile takes it in as such, whether the host keeps it or not."""
LOOKED_AT = 3
"""How many steps are looked at for repeated calls, all of which have them."""


def host_inputs(trace: Trace, steps: Sequence[Interval], findings: Sequence[Finding]) -> Obstacle | None:
    """Return whether the network copies tensors of the host to the device, by the modules around copies that wait."""
    inner = (o for f in findings if f.module for o in f.occurrences)
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
