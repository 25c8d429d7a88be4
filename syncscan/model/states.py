"""A step's states: with its syncs or without, launched as it is or compiled; and what keeps it from being compiled."""

from __future__ import annotations

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
