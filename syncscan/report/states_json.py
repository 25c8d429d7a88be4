"""Makes a step's states their part of the JSON report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from syncscan.model.obstacles import Obstacle
from syncscan.model.states import States
from syncscan.report.document import Range, about


class StateDocument(Struct, frozen=True):
    """The step with its syncs or without, launched one way."""

    launches: Annotated[str, about("eager, compile or reduce-overhead")]
    removed: Annotated[bool, about("whether all syncs are removed")]
    us: float
    range_us: Range


class StatesDocument(Struct, frozen=True):
    """The step's states with and without syncs, launched as they are and compiled."""

    baseline_us: Annotated[float, about("the step as it is")]
    each: tuple[StateDocument, ...]
    breaking: Annotated[tuple[str, ...], about("ids of the syncs that keep the network from being compiled")]
    eager_frames: Annotated[bool, about("whether one does so in a loop, so that its function runs eagerly")]
    pair_us: Annotated[float | None, about("the step without those, compiled with CUDA graphs")]
    pair_range_us: Range | None
    alone_us: Annotated[tuple[float, ...], about("savings of removing them alone, and effect of compiling")]


class ObstacleDocument(Struct, frozen=True):
    """Something that keeps the network from being compiled, or from being held by CUDA graphs."""

    kind: Annotated[str, about("double-backward, shapes, data-sizes, accumulation or written-inputs")]
    prevents: Annotated[tuple[str, ...], about("ways to launch; empty if that depends on unrecorded facts")]
    seen: Annotated[int, about("ops, kernels, syncs or backward passes per step that show it")]
    of: Annotated[int, about("out of so many; 0 if meaningless")]
    clause: str


def obstacle_documents(obstacles: Sequence[Obstacle]) -> tuple[ObstacleDocument, ...]:
    """Return the obstacles as JSON has them."""
    return tuple(ObstacleDocument(o.kind.value, o.prevents, o.seen, o.of, o.clause) for o in obstacles)


def states_document(states: States | None) -> StatesDocument | None:
    """Return the states as JSON has them; None where none were projected. Times are µs a step."""
    if states is None:
        return None
    return StatesDocument(
        baseline_us=states.baseline_us,
        each=tuple(StateDocument(s.launches, s.removed, s.us, s.range_us) for s in states.each),
        breaking=states.breaking,
        eager_frames=states.eager_frames,
        pair_us=states.pair.us if states.pair else None,
        pair_range_us=states.pair.range_us if states.pair else None,
        alone_us=states.alone_us,
    )
