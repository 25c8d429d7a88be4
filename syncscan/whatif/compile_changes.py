"""Turn what a compile reaches of a trace's steps into the Change that it makes of them.

Costs on the host are in units of one op that launches, as the same host ran it without a compile: hosts differ by
several times, and the two go together. Measured in 23 programs (H100 and H200, torch 2.11, `benchmarks/joint`), of
which 23 others and three older ones were no part.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import msgspec

from syncscan.model.habit import Change, Paced
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


def change_of(reached: Reach, how: Launching, costs: Costs) -> Change:
    paced, work = list[Paced](), list[tuple[int, float]]()
    for piece in reached.pieces if how is not Launching.EAGER else ():
        work += _work_left(piece, how, costs)
        taken = _units(piece, reached.unit_ns, how, costs)
        paced += _paced(piece, taken * reached.unit_ns, reached.unit_ns)
    return Change(work=tuple(work), paced=tuple(paced))


def _work_left(piece: CompiledPiece, how: Launching, costs: Costs) -> Iterator[tuple[int, float]]:
    """Yield the rows of device work that a piece shortens, each with the part of it that is left."""
    if how is Launching.GRAPH:
        fused, factor = [], costs.graph
    else:
        fused, factor = piece.fusion.work(costs.stay if piece.trains else costs.stay_only), costs.rest
    yield from fused
    if factor != 1.0:
        rows = {row for row, _ in fused}
        yield from ((row, factor) for op in piece.ops for row in op.work if row not in rows)


def _units(piece: CompiledPiece, unit_ns: float, how: Launching, costs: Costs) -> float:
    """Return what a piece takes of the host, in ops that launch: one call, and what a compile leaves of its ops."""
    if how is Launching.GRAPH:
        return WHOLE * costs.replay
    gradients = costs.gradient * piece.gradients
    if how is Launching.REDUCE_OVERHEAD:
        return piece.calls * (costs.replay if piece.trains else costs.replay_only) + gradients
    left = piece.fusion
    ops = costs.op * piece.leaves + costs.kernel * left.generated + costs.library * left.library_ns / unit_ns
    launches, (least, most) = piece.launches, CROSSING
    crossing = costs.crossing * launches if least <= launches <= most else 0.0
    if not piece.trains:
        return piece.calls * costs.call_only + ops * costs.ops_only + crossing
    return piece.calls * costs.call + ops + crossing + gradients


def _paced(piece: CompiledPiece, taken_ns: float, unit_ns: float) -> Iterator[Paced]:
    """Yield the piece's time on its threads, so that all of it takes so long; long pauses are other work, and stay."""
    spans = piece.spans(max(OTHER_NS, PAUSE * unit_ns))
    whole = sum(end - begin for _, begin, end in spans)
    for track, begin, end in spans:
        yield Paced(track, begin, end, taken_ns / whole if whole else 1.0)


class Costs(msgspec.Struct, frozen=True):
    """The host time of a compiled network, in ops that launch; `stay` is the part of fused device work."""

    op: float
    """An op that launched: what a compiled call keeps of it, in guards, wrappers and buffers."""
    library: float
    """The part that is left of what an op took that calls a library: the only one not in ops that launch."""
    kernel: float
    call: float
    """A call of a network, forward or backward: guards, wrappers, autograd."""
    replay: float
    """A call that replays a CUDA graph instead; all of it: guards, copies into the graph's inputs, its launch."""
    call_only: float
    """A call where no backward pass follows: no autograd."""
    replay_only: float
    """A call that replays a CUDA graph where no backward pass follows."""
    ops_only: float
    """The cost of ops, kernels and libraries where no backward pass follows, as a part of their cost elsewhere."""
    gradient: float
    """A parameter whose gradient is added up behind it."""
    stay: float
    """The part that is left of the time of device work that is fused: what still goes through memory. A forward pass
    writes what its backward pass reads, so that less is saved than where nothing follows: 0.39 to 0.61 was measured in
    seven training steps whose fused work takes 1 to 6 ms, 0.28 to 0.37 in three steps without a backward pass (H100 and
    H200, torch 2.11, `benchmarks/joint`), and 0.72 in a wide MLP that has one or two such kernels between two products
    (H200). What neighbors no longer pass on through memory, by the rate of each kernel, tells no more: it misses the
    compiled device time of 46 programs by 5 % of it in the median, left out of the fit one by one, one part by 4 %."""
    stay_only: float
    """The part that is left where no backward pass follows."""
    rest: float
    """The part that is left of device work that isn't fused: libraries get other layouts and epilogues. Of what is
    projected without it 0.86 to 1.06 was measured in eleven programs (H100, torch 2.11, `benchmarks/joint`), and below
    0.88 in a network of images (H200, `sample_traces/launches`)."""
    crossing: float
    """A launch of a graph whose Python ends at the edge of a chunk of the interpreter's stack (`CROSSING`)."""
    graph: float
    """The part that is left of device work, with the pauses around it, in a CUDA graph of the program's own: 0.7 and
    1.25 of it in two programs (H200, torch 2.11, `sample_traces/launches`)."""


LIKELY = Costs(
    op=0.354, library=0.349, kernel=0.47, call=11.2, replay=13.9, call_only=8.8, replay_only=8.4, ops_only=1.1,
    gradient=0.142, stay=0.5, stay_only=0.35, rest=1.0, crossing=0.0, graph=1.0,
)  # fmt: skip
LEAST = Costs(
    op=0.312, library=0.307, kernel=0.414, call=8.4, replay=8.3, call_only=6.6, replay_only=5.0, ops_only=1.1,
    gradient=0.071, stay=0.38, stay_only=0.28, rest=0.8, crossing=0.0, graph=0.68,
)  # fmt: skip
MOST = Costs(
    op=0.396, library=0.391, kernel=0.526, call=14.0, replay=18.1, call_only=11.0, replay_only=10.9, ops_only=1.1,
    gradient=0.2, stay=0.72, stay_only=0.44, rest=1.0, crossing=0.95, graph=1.3,
)  # fmt: skip
"""The host's costs are those that `python -m benchmarks.joint.fit` prints, of 23 programs, up to 32 calls a step. The
ends are the narrowest of those tried that hold nine in ten of their states: 12 % about what each op and launch takes, a
quarter about what a call does, 0.6 and 1.3 times a replay, half and 1.4 times a gradient."""
CROSSING = 650, 1_100
"""Launches of graphs for which a launch may take the host nearly twice as long in a script with few callers.

The Python that Inductor generates for a graph is one function, with 1.4 to 3.9 places for each launch in programs whose
graphs run once. CPython 3.11 and later keeps frames in chunks of 2,048 places. Where that function's frame ends less
than 114 places before its chunk's end, each launch allocates a chunk and frees it again, and takes 1.7 to 1.8 times as
long: in graphs of 288 to 1,152 launches, at two of 36 depths of the stack (H100, torch 2.11, Python 3.12;
`docs/how-well.md`). The callers of the smallest script took 654 to 671 places: there a function of 1,270 to 1,390 does.
https://github.com/python/cpython/issues/142183, fixed in spring 2026 in 3.13 and later."""
WHOLE = 0.12
"""The part of it that is left where the program replays a graph itself."""
