"""Build a RankGraph, all that a job's replay needs of one rank, from a trace and its numbered sync points.

Collectives are nodes of their own in it, since all ranks together decide when they start. A collective's kernel
occupies multiprocessors from its rank's arrival until the last rank has arrived and the data is there, so computation
takes longer meanwhile: on H200s, kernels took 1.4 times as long beside an all-reduce that waited for another rank (DDP,
torch 2.11). So a rank that arrives early at a collective pays twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.facts.device_work import communicating
from syncscan.model.arrays import Float64, Int64, distinct, median, quantile
from syncscan.model.interval import Cover, Interval, union
from syncscan.model.json_text import written
from syncscan.model.rank import (
    CollectiveNode,
    RankGraph,
    RankNode,
    RankProgram,
    RunNode,
    WaitNode,
)
from syncscan.model.slice_names import is_collective_kernel
from syncscan.model.trace import Category, Trace
from syncscan.whatif.build import build
from syncscan.whatif.events import coincident_edges
from syncscan.whatif.graph import HostRun, StepProgram
from syncscan.whatif.launch_gaps import Launches
from syncscan.whatif.projector import Projector
from syncscan.whatif.replayed_steps import explained, find_steps
from syncscan.whatif.wait_effects import WaitEffect

MOST_STEPS = 6
"""Most steps of a rank to replay, evenly chosen; all ranks must choose the same."""


def graph_of_rank(projector: Projector, steps: Sequence[Interval], places: Mapping[int, int]) -> RankGraph | None:
    """Return the programs of a rank's steps; None if nothing can be replayed.

    `places` gives a collective's index among the rank's collectives by the row of its kernel.
    """
    if not projector.replayable or not steps:
        return None
    trace = projector.trace
    chosen = sorted({round(k) for k in np.linspace(0, len(steps) - 1, MOST_STEPS)})
    replayed = find_steps(trace, projector.points, chosen=[steps[k] for k in chosen])
    edges = [*replayed.edges, *coincident_edges(replayed.launches, replayed.edges)]
    replayed = replace(replayed, launches=explained(replayed.launches, edges), edges=tuple(edges))
    graph = build(replayed, places)
    beside = _Beside(trace, replayed.launches)
    estimated = projector.calibrated().calibration.estimated
    times, by_ns = slowdown(trace)
    return RankGraph(
        programs=tuple(
            RankProgram(step, *_busy(trace, steps[step]), tuple(beside.nodes(program)))
            for step, program in zip(chosen, graph.programs, strict=True)
        ),
        threads=max(1, graph.threads),
        streams=len(graph.streams),
        events=graph.events,
        own_share=estimated,
        slowdown=times,
        slowdown_by_ns=by_ns,
    )


def _busy(trace: Trace, step: Interval) -> tuple[float, float]:
    """Return how long any stream works on this step's launches without collectives, and how long beside collectives."""
    s, rows = trace.slices, trace.device_rows[trace.launched_within(step.begin, step.end)]
    rows = rows[~trace.called(rows, is_collective_kernel)]
    busy = Cover(*union(s.ts[rows], s.end[rows])).length
    return float(busy), float((s.dur[rows] * beside_collectives(trace, rows)).sum())


class _Beside:
    """Adds to a graph's runs how much of their launches' work lies beside a collective, in the order of the calls."""

    def __init__(self, trace: Trace, launches: Launches) -> None:
        part = beside_collectives(trace, launches.rows) * ~trace.called(launches.rows, is_collective_kernel)
        self.beside = (launches.end - launches.start) * part
        self.stream, self.issued = launches.stream, launches.issued

    def nodes(self, program: StepProgram) -> Iterator[RankNode]:
        """Yield the nodes of a program; its launches are those of the steps from `first` on."""
        at = program.first
        for node in program.nodes:
            if isinstance(node, HostRun):
                launched = slice(at, at + node.launches)
                feeds = tuple(
                    (
                        stream,
                        work_ns,
                        float(self.beside[launched][self.stream[launched] == stream].sum()),
                        corners(*_late(program, row)),
                    )
                    for stream, work_ns, row in node.feeds
                )
                at += node.launches
                yield RunNode(node.thread, node.host_ns, node.launches, feeds)
            else:
                at += isinstance(node, CollectiveNode)
                yield written(WaitNode, node) if isinstance(node, WaitEffect) else node


def _late(program: StepProgram, row: int) -> tuple[Float64, Float64]:
    begin = program.late_first[row]
    more = program.late_first[row + 1 :]
    end = more[0] if len(more) else len(program.late_host)
    return program.late_host[begin:end], program.late_device[begin:end]


def corners(host: Float64, device: Float64) -> tuple[tuple[float, float], ...]:
    """Return the pairs that can maximize scale * host + stretch * device for any positive scales.

    They are the corners of the upper right part of the pairs' convex hull.
    """
    hull: list[tuple[float, float]] = []
    for pair in sorted(zip(host.tolist(), device.tolist(), strict=True), reverse=True):
        if hull and pair[1] <= hull[-1][1]:
            continue
        while len(hull) > 1 and _inside(hull[-2], hull[-1], pair):
            hull.pop()
        hull.append(pair)
    return tuple(hull)


def _inside(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Return whether b lies on or below the line from a to c, each further left and up than the previous one."""
    return (b[0] - a[0]) * (c[1] - a[1]) <= (c[0] - a[0]) * (b[1] - a[1])


BESIDE, ALONE = 0.95, 0.05
"""Least part of its time beside a collective for a kernel to count as beside it, and most part to count as alone."""
AROUND = 2
"""Number of neighboring kernels on either side that distinguish kinds. On sixteen recordings of two H200s, the slowdown
was 1.0 to 1.9 by the kernel's name alone, with one on either side 1.1 to 1.9, and with two or more 1.2 to 1.5 (1.8 with
so few that they don't matter)."""
ALIKE = 1.2
"""Largest ratio of the ninetieth to the tenth percentile of a kernel's lengths for one size. With it, a ResNet's
slowdown is 1.2 to 1.4 instead of 1.0 to 1.2; transformers' is unchanged."""
MOST = 2.0
"""Upper limit of contention: two kernels that share a device fairly take twice as long."""


def beside_collectives(trace: Trace, rows: Int64) -> Float64:
    """Return for each row of device work the part of its time in which a collective runs on its device."""
    s = trace.slices
    collective = trace.device_rows[communicating(trace)]
    part = np.zeros(len(rows))
    for device in distinct(s.device[collective]).tolist():
        there = collective[s.device[collective] == device]
        cover = Cover(*union(s.ts[there], s.end[there]))
        own = np.flatnonzero(s.device[rows] == device)
        length = np.maximum(s.dur[rows[own]], 1)
        part[own] = (cover.before(s.end[rows[own]]) - cover.before(s.ts[rows[own]])) / length
    return part


def slowdown(trace: Trace) -> tuple[float, float]:
    """Return how many times as long kernels take beside a collective (1 if unknown), and the work that shows it, ns.

    Kernels of one name and different sizes are distinguished by those around them on their stream: in networks of equal
    layers, the same kernel of each layer is compared, beside a collective and alone. Where layers of different sizes
    have the same kernels in the same order, as in a ResNet, their lengths differ, and they don't count.
    """
    s, rows = trace.slices, trace.device_rows
    rows = rows[(s.category[rows] == Category.KERNEL) & ~communicating(trace)]
    if not len(rows):
        return 1.0, 0.0
    rows = rows[np.lexsort((s.ts[rows], s.stream[rows], s.device[rows]))]
    part, kind = beside_collectives(trace, rows), _kinds(s.name[rows].astype(np.int64))
    beside, alone, length = part >= BESIDE, part <= ALONE, s.dur[rows]
    slow, fast = 0.0, 0.0
    for one in np.intersect1d(kind[beside], kind[alone]).tolist():
        slowed, usual = length[beside & (kind == one)], length[alone & (kind == one)]
        if len(usual) > 1 and _alike(usual) and _alike(slowed):
            slow += median(slowed) * len(slowed)
            fast += median(usual) * len(slowed)
    return (min(max(slow / fast, 1.0), MOST), fast) if fast else (1.0, 0.0)


def _alike(lengths: Int64) -> bool:
    return quantile(lengths, 0.9) <= ALIKE * quantile(lengths, 0.1)


def _kinds(names: Int64) -> Int64:
    """Return a number for each kernel that is equal for kernels of one name between others of equal names."""
    padded = np.pad(names, AROUND, constant_values=-1)
    around = np.stack([padded[k : k + len(names)] for k in range(2 * AROUND + 1)])
    kinds: Int64 = np.unique(around, axis=1, return_inverse=True)[1].reshape(-1)
    return kinds
