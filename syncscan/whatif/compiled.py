"""From the steps of a trace and the syncs that stay to the Changes that a compile of the network makes of them.

Costs on the host are in units of one op that launches, as the same host ran it without a compile: hosts differ by
several times, and the two go together. Measured in 11 programs (H100, torch 2.11, `benchmarks/joint`), of which the
other eleven and three older ones were no part.
"""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from syncscan.facts.network import Op, Pass, ops_of, passes
from syncscan.model.finding import Finding
from syncscan.model.habit import Change, Paced
from syncscan.model.interval import Cover, Interval, ThreadInterval, cover_of
from syncscan.model.names import is_loader
from syncscan.model.trace import Category, Trace
from syncscan.whatif.fusion import Fusion, fusion


class Launching(str, enum.Enum):
    """How a step's launches are made: as they are, by a compiled network, by one that replays CUDA graphs, or all of
    the step as one CUDA graph.
    """

    EAGER = "eager"
    COMPILE = "compile"
    REDUCE_OVERHEAD = "reduce-overhead"
    GRAPH = "graph"


class Costs(msgspec.Struct, frozen=True):
    """What a compiled network takes of the host, in ops that launch; `stay` is the part of fused device work."""

    op: float
    """An op that launched: what a compiled call keeps of it, in guards, wrappers and buffers."""
    library: float
    """Of what an op took that calls a library, the part that is left: the only one not in ops that launch."""
    kernel: float
    """A kernel that it launches."""
    call: float
    """A call of a compiled piece, forward or backward: guards, wrappers, autograd."""
    replay: float
    """A call that replays a CUDA graph instead; all of it."""
    gradient: float
    """A parameter whose gradient is added up behind it."""
    stay: float
    graph: float
    """The part that is left of device work, with the pauses around it, in a CUDA graph of the program's own: 0.7 and
    1.25 of it in two programs (H200, torch 2.11, `sample_traces/launches`)."""


LIKELY = Costs(op=0.26, library=0.45, kernel=0.47, call=6.0, replay=7.0, gradient=0.5, stay=0.42, graph=1.0)
LEAST = Costs(op=0.24, library=0.41, kernel=0.43, call=4.5, replay=3.5, gradient=0.24, stay=0.36, graph=0.68)
MOST = Costs(op=0.29, library=0.49, kernel=0.52, call=8.5, replay=11.0, gradient=0.66, stay=0.55, graph=1.3)
INFERENCE = 0.65
"""The part of a call's cost that is left where no backward pass follows."""
WHOLE = 0.3
"""The part of it that is left where the program replays a graph itself."""


OTHER_NS, PAUSE = 100_000, 5.0
"""So long between two ops, and as many times as long as one that launches takes, isn't Python on its way to the next
op: no compile spares it. (H200's hosts, profiled: 2 to 70 µs between two.)"""


class Piece(NamedTuple):
    """Ops that one compiled graph holds."""

    ops: tuple[Op, ...]
    trains: bool

    @property
    def interval(self) -> Interval:
        """From its first op's begin to its last one's end."""
        return Interval(self.ops[0].begin, self.ops[-1].end)


class Reach(msgspec.Struct, frozen=True, dict=True):
    """What a compile reaches of the replayed steps."""

    pieces: tuple[Piece, ...]
    skipped: tuple[Pass, ...]
    """Passes whose frame stays eager, since their graph would break in a loop."""
    breaking: tuple[Finding, ...]
    """Syncs that stay within what would be compiled."""
    ops: float
    """Ops that launch, in all passes."""
    host_ns: float
    """What they took of the host, waits left out, as recorded."""
    skipped_ns: float
    """Of that, what the passes took that stay eager."""

    def fusion(self, trace: Trace, piece: Piece) -> Fusion:
        """What a compile leaves of a piece's launches; found once."""
        at = id(piece)
        if at not in self._fusions:
            self._fusions[at] = fusion(trace, piece.ops)
        return self._fusions[at]

    @cached_property
    def _fusions(self) -> dict[int, Fusion]:
        return {}

    @property
    def unit_ns(self) -> float:
        """What one op that launches took of the host, with the Python around it."""
        return self.host_ns / self.ops if self.ops else 0.0


def reach(trace: Trace, steps: Sequence[Interval], findings: Sequence[Finding], removed: frozenset[str]) -> Reach:
    """What a compile of the network reaches of these steps.

    Args:
        trace: whose steps they are.
        steps: from one's begin to the next one's.
        findings: all syncs of the trace.
        removed: the ids of those that are gone.
    """
    waits = cover_of([(o.sync.ts, o.sync.end) for f in findings for o in f.occurrences if o.sync.end > o.sync.ts])
    breaks = Breaks(trace, findings, removed)
    pieces, skipped, ops, host, eager = list[Piece](), list[Pass](), 0, 0.0, 0.0
    for step in steps:
        found = passes(trace, step)
        for at, each in enumerate(found):
            ops += sum(op.leaves for op in each.ops)
            took = _own_ns(each.interval, waits)
            host += took
            forwards = _forwards(found, at)
            if any(breaks.skips(one.interval) for one in forwards):
                skipped.append(each)
                eager += took
            else:
                trains = any(one.backward for one in found)
                pieces += [Piece(part, trains) for part in breaks.split(each, forwards)]
    breaking = {f.id: f for _, f in breaks.inside}
    return Reach(tuple(pieces), tuple(skipped), tuple(breaking.values()), ops, host, eager)


def reach_of_graph(
    trace: Trace, steps: Sequence[Interval], findings: Sequence[Finding], removed: frozenset[str]
) -> Reach:
    """What a CUDA graph of everything between two waits holds of these steps; arguments as for `reach`."""
    left = [(o.sync, f) for f in findings if f.id not in removed for o in f.occurrences]
    waits = cover_of([(sync.ts, sync.end) for sync, _ in left if sync.end > sync.ts])
    pieces, count, host = list[Piece](), 0, 0.0
    for step in steps:
        ops = ops_of(trace, step)
        if ops:
            cuts = sorted(sync.ts for sync, _ in left if step.holds(sync.ts))
            pieces += [Piece(part, False) for part in _cut_at(ops, cuts)]
            count += sum(op.leaves for op in ops)
            host += _own_ns(Interval(ops[0].begin, max(op.end for op in ops)), waits)
    breaking = tuple({f.id: f for _, f in left}.values())
    return Reach(tuple(pieces), (), breaking, count, host, 0.0)


def _forwards(found: Sequence[Pass], at: int) -> list[Pass]:
    """The forward passes that this pass is, or is the backward of."""
    if not found[at].backward:
        return [found[at]]
    before = at - 1
    return [found[before]] if before >= 0 and not found[before].backward else []


def _own_ns(interval: Interval, waits: Cover) -> float:
    begin, end = (np.array([at], np.int64) for at in interval)
    return float(interval.length - waits.within(begin, end)[0])


class Breaks:
    """Where syncs would break the graph of a network, and which frames stay eager for it.

    Args:
        trace: whose loaders part the calls of a network, as syncs outside of it do.
        findings: all syncs of the trace.
        removed: the ids of those that are gone.
    """

    def __init__(self, trace: Trace, findings: Sequence[Finding], removed: frozenset[str]) -> None:
        known = any(f.where.module for f in findings)
        self.inside: list[tuple[int, Finding]] = []
        self.outside: list[int] = trace.slices.ts[trace.where(is_loader, Category.ANNOTATION)].tolist()
        for finding in findings:
            inner = bool(finding.where.module) if known else finding.where.source is None
            for o in finding.occurrences:
                if not inner:
                    self.outside.append(o.sync.ts)
                elif finding.id not in removed:
                    self.inside.append((o.sync.ts, finding))
        self.inside.sort(key=lambda each: each[0])
        self.outside.sort()

    def within(self, interval: Interval) -> list[tuple[int, Finding]]:
        """Those in this interval: when, and which."""
        return [each for each in self.inside if interval.holds(each[0])]

    def skips(self, interval: Interval) -> bool:
        """Whether one line waits again and again in this pass: its graph would break in a loop."""
        met = Counter(finding.id for call in self.calls(interval) for _, finding in self.within(call))
        return any(count > len(self.calls(interval)) for count in met.values())

    def calls(self, interval: Interval) -> list[Interval]:
        """The pass, cut where the program waits outside of its network: a call of it each."""
        cuts = [at for at in self.outside if interval.holds(at)]
        return [Interval(*pair) for pair in zip([interval.begin, *cuts], [*cuts, interval.end], strict=True)]

    def split(self, each: Pass, forwards: Sequence[Pass]) -> Iterator[tuple[Op, ...]]:
        """The ops of a pass by the graph that holds them: a backward pass has as many graphs as its forward one."""
        if not each.backward:
            cuts = [at for at, _ in self.within(each.interval)] + [a for a in self.outside if each.interval.holds(a)]
            yield from _cut_at(each.ops, sorted(cuts))
            return
        count = sum(len(self.within(one.interval)) for one in forwards) + 1
        size = -(-len(each.ops) // count)
        yield from (each.ops[at : at + size] for at in range(0, len(each.ops), size))


def _cut_at(ops: Sequence[Op], cuts: Sequence[int]) -> Iterator[tuple[Op, ...]]:
    parts: list[list[Op]] = [[]]
    rest = list(cuts)
    for op in ops:
        while rest and op.begin >= rest[0]:
            rest.pop(0)
            parts.append([])
        parts[-1].append(op)
    yield from (tuple(part) for part in parts if any(op.work for op in part))


def change_of(trace: Trace, found: Reach, how: Launching, costs: Costs) -> Change:
    """What a compile changes of a step.

    Args:
        trace: whose steps they are.
        found: what it reaches.
        how: compiled, or with CUDA graphs.
        costs: of the host and the device.
    """
    paced, work = list[Paced](), list[tuple[int, float]]()
    for piece in found.pieces if how is not Launching.EAGER else ():
        if how is Launching.GRAPH:
            paced += _paced(piece, WHOLE * costs.replay * found.unit_ns, found.unit_ns)
            if costs.graph != 1.0:
                work += [(row, costs.graph) for op in piece.ops for row in op.work]
            continue
        left = found.fusion(trace, piece)
        work += left.work(costs.stay)
        if how is Launching.COMPILE:
            taken = costs.op * sum(op.leaves for op in piece.ops) + costs.kernel * left.generated
            taken += costs.library * left.library_ns / found.unit_ns + costs.call * (1.0 if piece.trains else INFERENCE)
        else:
            taken = costs.replay * (1.0 if piece.trains else INFERENCE)
        taken += costs.gradient * sum(op.gradients for op in piece.ops)
        paced += _paced(piece, taken * found.unit_ns, found.unit_ns)
    return Change(work=tuple(work), paced=tuple(paced))


def _paced(piece: Piece, taken_ns: float, unit_ns: float) -> Iterator[Paced]:
    """The piece's time on its threads, so that all of it takes so long; long pauses in it are other work, and stay."""
    spans = list(_spans(piece.ops, max(OTHER_NS, PAUSE * unit_ns)))
    whole = sum(end - begin for _, begin, end in spans)
    for track, begin, end in spans:
        yield Paced(track, begin, end, taken_ns / whole if whole else 1.0)


def _spans(ops: Sequence[Op], longest_ns: float) -> Iterator[ThreadInterval]:
    """On each thread of these ops from one's begin to another's end, with no longer pause between two."""
    by_track: dict[int, list[Op]] = {}
    for op in ops:
        by_track.setdefault(op.track, []).append(op)
    for track, mine in by_track.items():
        begin = mine[0].begin
        for op, following in itertools.zip_longest(mine, mine[1:]):
            if following is None or following.begin - op.end > longest_ns:
                yield ThreadInterval(track, begin, op.end)
                begin = following.begin if following else 0
