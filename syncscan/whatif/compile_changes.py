"""Turn what a compile reaches of a trace's steps into the Change that it makes of them."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from syncscan.model.habit import Change, Paced
from syncscan.model.trace import Trace
from syncscan.whatif.compile_costs import WHOLE, Costs
from syncscan.whatif.compile_reach import CompiledPiece, Reach

OTHER_NS, PAUSE = 100_000, 5.0
"""So long between two ops, and as many times as long as one that launches takes, isn't Python on its way to the next
op: no compile spares it. (H200's hosts, profiled: 2 to 70 µs between two.)"""


class Launching(str, enum.Enum):
    """How a step's launches are made.

    As they are, by a compiled network, by one that replays CUDA graphs, or all of the step as one CUDA graph.
    """

    EAGER = "eager"
    COMPILE = "compile"
    REDUCE_OVERHEAD = "reduce-overhead"
    GRAPH = "graph"


def change_of(trace: Trace, reached: Reach, how: Launching, costs: Costs) -> Change:
    """Return what a compile changes of a step.

    Args:
        trace: the trace whose steps they are.
        reached: the parts that a compile reaches.
        how: compiled, or with CUDA graphs.
        costs: the costs of the host and the device.
    """
    paced, work = list[Paced](), list[tuple[int, float]]()
    for piece in reached.pieces if how is not Launching.EAGER else ():
        work += _work_left(trace, piece, how, costs)
        taken = _units(trace, piece, reached.unit_ns, how, costs)
        paced += _paced(piece, taken * reached.unit_ns, reached.unit_ns)
    return Change(work=tuple(work), paced=tuple(paced))


def _work_left(trace: Trace, piece: CompiledPiece, how: Launching, costs: Costs) -> Iterator[tuple[int, float]]:
    """Yield the rows of device work that a piece shortens, each with the part of it that is left."""
    if how is Launching.GRAPH:
        fused, factor = [], costs.graph
    else:
        fused, factor = piece.fusion(trace).work(costs.stay if piece.trains else costs.stay_only), costs.rest
    yield from fused
    if factor != 1.0:
        rows = {row for row, _ in fused}
        yield from ((row, factor) for op in piece.ops for row in op.work if row not in rows)


def _units(trace: Trace, piece: CompiledPiece, unit_ns: float, how: Launching, costs: Costs) -> float:
    """Return what a piece takes of the host, in ops that launch: one call, and what a compile leaves of its ops."""
    if how is Launching.GRAPH:
        return WHOLE * costs.replay
    gradients = costs.gradient * piece.gradients
    if how is Launching.REDUCE_OVERHEAD:
        return piece.calls * (costs.replay if piece.trains else costs.replay_only) + gradients
    left = piece.fusion(trace)
    ops = costs.op * piece.leaves + costs.kernel * left.generated + costs.library * left.library_ns / unit_ns
    crossing = costs.crossing * piece.launches(trace) if piece.may_cross(trace) else 0.0
    if not piece.trains:
        return piece.calls * costs.call_only + ops * costs.ops_only + crossing
    return piece.calls * costs.call + ops + crossing + gradients


def _paced(piece: CompiledPiece, taken_ns: float, unit_ns: float) -> Iterator[Paced]:
    """Yield the piece's time on its threads, so that all of it takes so long; long pauses are other work, and stay."""
    spans = piece.spans(max(OTHER_NS, PAUSE * unit_ns))
    whole = sum(end - begin for _, begin, end in spans)
    for track, begin, end in spans:
        yield Paced(track, begin, end, taken_ns / whole if whole else 1.0)
