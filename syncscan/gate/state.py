"""The interface by which a check and a diff read one state of a program: recordings of it, or the ranks of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from syncscan.gate.differences import DiffState, Site
from syncscan.gate.matched_sites import Key
from syncscan.gate.verdict import Limit, Rules, Violation
from syncscan.model.finding import Finding
from syncscan.model.step import BOUND_FROM

HAIR = 1e-6
"""Tolerance by which a sum of means may exceed a limit."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """A step's times in one recording or job, µs."""

    observed_us: float
    unprofiled_us: float | None
    device_us: float
    """Work of the busiest device per step."""
    ahead_us: float | None = None
    """How far the host is ahead of the device at a step's median launch."""
    steps_us: Sequence[float]
    """Single steps as recorded."""
    unprofiled_steps_us: Sequence[float] = ()

    def step_us(self, unprofiled: bool) -> float:
        return (self.unprofiled_us if unprofiled else None) or self.observed_us

    def steps(self, unprofiled: bool) -> Sequence[float]:
        return self.unprofiled_steps_us if unprofiled else self.steps_us

    @property
    def of_host(self) -> float:
        """Return the fraction of a recorded step that its host can lengthen: 0 where the device sets the pace."""
        works = self.device_us / self.observed_us if self.observed_us else 0.0
        return 0.0 if works >= BOUND_FROM else 1 - works


GainShare = tuple[float, float, float]
"""A gain, and the least and the most that it may be, as fractions of the step."""


class State(Protocol):
    """One state of a program or job; times in µs per step."""

    name: str
    facts: DiffState
    steps_by: frozenset[object] = frozenset()
    """How its steps were found."""
    devices: frozenset[str] = frozenset()
    options: frozenset[tuple[bool, bool]] = frozenset()
    """Options with which the profiler recorded: stacks, shapes."""
    size: int = 0
    """Ranks of the job, with those that have no trace."""
    waits_withheld: bool = False
    """Whether it doesn't show how long its syncs wait."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Its findings, intended waits among them."""

    @property
    def sites(self) -> Mapping[Key, Site]:
        """Its findings by place, over rules, recordings and ranks."""

    @property
    def timings(self) -> Sequence[Timing]:
        """The step's times in each recording."""

    def projected(self, removed: Sequence[Site]) -> Sequence[GainShare]:
        """Return the gains that its replays project without these sites; empty where they can't."""

    def most(self, selected: Sequence[Finding], field: str) -> tuple[float, str]:
        """Return the sum of a field over these findings, and whose it is: of a job's ranks, the one with the most."""

    def saved(self, selected: Sequence[Finding]) -> tuple[float, float] | None:
        """Return the fractions of the step between which removing these findings saves; None without a replay."""

    def unseen(self) -> str:
        """Return why no sync can be seen, as a sentence; empty where they can."""

    def delays(self, limit: Limit, selected: Sequence[Finding]) -> Iterator[Violation]:
        """Yield the violations of a limit on how long ranks delay one another."""
        yield from ()

    def doubts(self, rules: Rules) -> Iterator[str]:
        """Yield notes on what wasn't checked, and on what is uncertain about the limits."""
        yield from ()

    def lacks(self, name: str) -> Iterator[str]:
        """Yield notes on what a comparison with it can't show; `name` says which of the two it is."""
        yield from ()
