"""A step's states, with its syncs or without, launched as it is or compiled; what keeps it from being compiled.

Also what torch.compile's dynamo reported while the program ran: breaks, skipped frames and recompiles.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from enum import Enum
from typing import Annotated

import msgspec

EAGER, COMPILE, REDUCE_OVERHEAD = "eager", "compile", "reduce-overhead"
"""Ways to launch that are compared: as the step is, its network under `torch.compile`, that with CUDA graphs."""


class ProjectedState(msgspec.Struct, frozen=True):
    """The step in one state, projected; times in µs."""

    launches: str
    removed: bool
    """Whether all syncs of the program's own are gone."""
    us: float
    range_us: tuple[float, float]


class States(msgspec.Struct, frozen=True, kw_only=True):
    """States of a step: with and without its syncs, eager and compiled; times in µs per step."""

    baseline_us: float
    """The step as it is."""
    each: tuple[ProjectedState, ...]
    """All but the step as it is."""
    breaking: tuple[str, ...]
    """Ids of the syncs within the network, each of which would break a compiled graph."""
    eager_frames: bool
    """Whether one of them does in a loop, so that the whole function stays eager."""
    pair: ProjectedState | None
    """The step without those syncs and with CUDA graphs of its network; None where there are none."""
    alone_us: tuple[float, float]
    """Savings of removing those syncs alone, and of such a compile alone."""

    def state(self, launches: str, removed: bool) -> ProjectedState | None:
        """Return one of the projected states; None for the step as it is."""
        return next((s for s in self.each if s.launches == launches and s.removed == removed), None)


# what keeps a step from being compiled


class ObstacleKind(str, enum.Enum):
    """Kinds of obstacles."""

    DOUBLE_BACKWARD = "double-backward"
    """Gradients of gradients: aot_autograd raises (`torch/_functorch/_aot_autograd/runtime_wrappers.py`)."""
    SHAPES = "shapes"
    """Sizes differ between steps: a CUDA graph is recorded for each (`torch/_inductor/cudagraph_trees.py`), nine times
    as long as the step for 31 sizes (H200, torch 2.11: 1.3 → 12.4 ms)."""
    DATA_SIZES = "data-sizes"
    """Sizes that the network reads from the device: the same, and a graph break at each."""
    ACCUMULATION = "accumulation"
    """Several backward passes before an optimizer's step: a graph's next call overwrites what it returned before, and
    using that raises, while a loop that keeps nothing gains (H200, torch 2.11: 25.6 → 11.7 ms)."""
    WRITTEN_INPUTS = "written-inputs"
    """Writes into tensors that were there before: inductor skips graphs that write into their arguments."""
    HOST_INPUTS = "host-inputs"
    """Tensors that the host makes within the network: inductor gives no CUDA graph to what runs on the CPU
    (`torch/_inductor/utils.py`, "cpu device"), unless it can move it to the GPU."""
    UNUSED_GRADIENTS = "unused-gradients"
    """Forward passes with gradients that no backward pass uses: with "pending, uninvoked backwards", CUDA graphs are
    recorded anew (`torch/_inductor/cudagraph_trees.py`; torchdiffeq's `latent_ode.py`: 256 and 217 → 230 and 240 ms,
    H200, torch 2.11)."""
    CALLS = "calls"
    """Several calls of a network in a step that trains nothing: each begins anew, in what the last one returned."""
    FORWARDS = "forwards"
    """Several calls of a network before a backward pass: each has a graph of its own, with its own memory."""
    OUTPUTS = "outputs"
    """Outputs that the program's source keeps over calls: the next one overwrites them, and using them raises."""
    INFERENCE_MODE = "inference-mode"
    """A network that is trained and called in `torch.inference_mode`: compiled there first, it can't be trained
    (pytorch#135892)."""


class Obstacle(msgspec.Struct, frozen=True):
    """An obstacle, as the recording shows it."""

    kind: ObstacleKind
    seen: int
    """How many ops, kernels, syncs or backward passes show it, a step."""
    of: int = 0
    """The number that there are in all; 0 where that says nothing."""
    where: str = ""
    """The place in the program's source that shows it: "`hidden`, train.py:31"; empty where the recording shows it."""

    @property
    def prevents(self) -> tuple[str, ...]:
        """The ways to launch that can't be had for it; empty where that depends on what the recording doesn't show."""
        return _PREVENTS.get(self.kind, ())

    @property
    def clause(self) -> str:
        """The obstacle and its consequence, without a full stop."""
        return _CLAUSES[self.kind].format(seen=self.seen, of=self.of, where=self.where)

    @property
    def fix(self) -> str:
        """Advice on other ways to save launches, or on what comes first."""
        return _FIXES[self.kind]


_PREVENTS = {
    ObstacleKind.DOUBLE_BACKWARD: (COMPILE, REDUCE_OVERHEAD),
    ObstacleKind.SHAPES: (REDUCE_OVERHEAD,),
    ObstacleKind.DATA_SIZES: (REDUCE_OVERHEAD,),
    ObstacleKind.UNUSED_GRADIENTS: (REDUCE_OVERHEAD,),
}
_EACH_CALL_COSTS = (ObstacleKind.CALLS, ObstacleKind.FORWARDS)
_CLAUSES = {
    ObstacleKind.DOUBLE_BACKWARD: "double backward ({seen} ops): `torch.compile` raises",
    ObstacleKind.SHAPES: "shapes change between steps ({seen} of {of} kernels): no CUDA graph",
    ObstacleKind.DATA_SIZES: "sizes depend on data that the network reads: no CUDA graph",
    ObstacleKind.ACCUMULATION: (
        "gradients of {seen} backward passes add up: with CUDA graphs, outputs that are kept over calls raise"
    ),
    ObstacleKind.WRITTEN_INPUTS: "{seen} ops write into existing tensors: no CUDA graph if they are arguments",
    ObstacleKind.HOST_INPUTS: "tensors of the CPU enter the network ({seen} per step): no CUDA graph of that part",
    ObstacleKind.UNUSED_GRADIENTS: (
        "{seen} of {of} products record gradients that no backward pass uses: CUDA graphs are recorded anew"
    ),
    ObstacleKind.CALLS: (
        "a network is called {seen} times per step: each compiled call costs, and outputs kept over calls raise"
    ),
    ObstacleKind.FORWARDS: "a network is called {seen} times before a backward pass: each compiled call costs",
    ObstacleKind.OUTPUTS: "an output outlives its call ({where}): with CUDA graphs, using it raises",
    ObstacleKind.INFERENCE_MODE: "`torch.inference_mode` calls what is trained ({where}): compiled, training can raise",
}
_FIXES = {
    ObstacleKind.DOUBLE_BACKWARD: "Larger batches and fewer ops save launches.",
    ObstacleKind.SHAPES: "Pad to a few fixed sizes first; larger batches save launches, too.",
    ObstacleKind.DATA_SIZES: "Give the sizes as numbers that the host knows first.",
    ObstacleKind.ACCUMULATION: "Clone what outlives a call before you try graphs.",
    ObstacleKind.WRITTEN_INPUTS: "Keep what is written in buffers of the module.",
    ObstacleKind.HOST_INPUTS: "Make them on the device (`device=`), or once, as buffers.",
    ObstacleKind.UNUSED_GRADIENTS: "Call what isn't trained in `torch.no_grad()`.",
    ObstacleKind.CALLS: "Clone what outlives a call; one call for a larger batch costs once.",
    ObstacleKind.FORWARDS: "One call for a larger batch costs once.",
    ObstacleKind.OUTPUTS: "Clone what outlives a call.",
    ObstacleKind.INFERENCE_MODE: "Use `torch.no_grad()` there.",
}


def in_words(obstacles: Sequence[Obstacle]) -> str:
    text = "; ".join(obstacle.clause for obstacle in obstacles)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def prevented(obstacles: Sequence[Obstacle]) -> frozenset[str]:
    """Return the ways to launch that can't be had, or that can't gain.

    Of several calls of a network, each costs more when it is compiled than its kernels save, unless a graph launches
    them (72 calls in torchdiffeq's `latent_ode.py`: 256 and 217 → 346 and 305 ms, H200, torch 2.11).
    """
    launches = frozenset(launch for obstacle in obstacles for launch in obstacle.prevents)
    without_gain = REDUCE_OVERHEAD in launches and any(obstacle.kind in _EACH_CALL_COSTS for obstacle in obstacles)
    return launches | {COMPILE} if without_gain else launches


def standing(obstacles: Sequence[Obstacle], removed: bool) -> list[Obstacle]:
    """Return the obstacles that a step has with its syncs, or with them `removed`: then nothing reads sizes."""
    return [obstacle for obstacle in obstacles if not (removed and obstacle.kind is ObstacleKind.DATA_SIZES)]


MOST_EVENTS = 10_000
"""Events of one record; capture stores fewer."""
Line = Annotated[int, msgspec.Meta(ge=-1, le=2**31)]


class CompileKind(Enum):
    """Outcomes of a frame that dynamo tried to compile."""

    BREAK = "break"
    """A graph ends at this line, it runs eagerly, and another graph goes on behind it."""
    SKIPPED = "skipped"
    """The whole frame runs eagerly."""
    RECOMPILED = "recompiled"
    """The frame was compiled once more, as a guard of an earlier compilation failed."""

    NO_CUDA_GRAPH = "no CUDA graph"
    """Inductor compiled the frame, and launches its kernels one by one though CUDA graphs were asked for."""


class CompileEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A graph break, a skipped frame or a recompile, with dynamo's reason."""

    kind: CompileKind
    reason: Annotated[str, msgspec.Meta(max_length=2000)]
    hint: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    """Dynamo's advice; older versions of torch give none."""
    file: str
    line: Line
    """That stopped it; of a recompile, and where dynamo names no line, the frame's first."""
    function: str
    frame: str
    """The function that was to be compiled; another one where it had `function` inlined."""
    frame_file: str = ""
    frame_line: Line = -1
    """Its first."""
    frame_last: Line = -1
    """Its last, of a skipped frame whose file was at hand."""
    count: Annotated[int, msgspec.Meta(ge=1, le=2**62)] = 1
    """Number of such reports from dynamo."""


class CompileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All messages of dynamo, and the code that they are about."""

    torch: str
    """Its version."""
    frames: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0
    """That dynamo took up, a recompile and what goes on behind a break each counted."""
    graphs: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 0
    """That it made of them."""
    events: Annotated[tuple[CompileEvent, ...], msgspec.Meta(max_length=MOST_EVENTS)] = ()
    notes: tuple[str, ...] = ()
    """Facts that aren't known, and why."""
