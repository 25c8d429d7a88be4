"""Find host memory that is filled again while a copy from it still runs, as far as a recording shows it.

A recording has no addresses: it says when a copy from pinned memory ran, and which ops of the host wrote to a tensor.
A refill is an op that fills a tensor, launches nothing, and is followed by the next copy of the site,
as the loop `fill, copy, fill, copy` has it; and it began before the copy before it was done. A site is passed over
where anything speaks for another buffer: a wait or a question for an event or stream before one of its fills (two
buffers in turn, each with its event), or memory that is pinned or made there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from syncscan.facts.clock_tolerance import HOST_NS
from syncscan.facts.nesting import innermost_that
from syncscan.facts.paths import Paths
from syncscan.model.arrays import Int64
from syncscan.model.runtime_calls import (
    is_device_synchronize,
    is_event_synchronize,
    is_query,
    is_stream_synchronize,
)
from syncscan.model.trace import NONE, Category, Trace

_FILLS = frozenset(f"aten::{name}_" for name in "copy fill zero random normal uniform bernoulli exponential".split())
"""Ops that write all of a tensor."""
_MAKES = frozenset(f"aten::{name}" for name in "empty empty_like empty_strided zeros ones full pin_memory".split())
"""Ops that return new memory."""
_PINS = ("aten::pin_memory", "aten::_pin_memory")

_Site = tuple[int, tuple[str, ...], str, int]
"""Thread, names around the copy, name of the fill, and bytes."""


class Refill(NamedTuple):
    """A copy from pinned memory, and the op that fills that memory before it is done."""

    copy: int
    """Row of the outermost op around the copy's call."""
    fill: int
    """Row of the op that fills."""
    times: int
    """How often this came at the site."""


class _Pair(NamedTuple):
    copy: int
    fill: int
    early: bool
    """Whether the copy still ran when the fill began."""
    apart: bool
    """Whether something speaks for another buffer."""


def refills_of(trace: Trace) -> tuple[Refill, ...]:
    """Return the refills of a recording that come before the copy is done, one for each site, by its first."""
    pairs: dict[_Site, list[_Pair]] = defaultdict(list)
    for site, pair in _CopyLoops(trace).pairs():
        pairs[site].append(pair)
    early = [[pair for pair in of if pair.early] for of in pairs.values() if not any(pair.apart for pair in of)]
    return tuple(Refill(of[0].copy, of[0].fill, len(of)) for of in early if of)


class _CopyLoops:
    def __init__(self, trace: Trace) -> None:
        self._trace, self._paths = trace, trace.cached(Paths)
        ops, _ = trace.rows_of(Category.CPU_OP)
        around = innermost_that(trace.is_category(Category.CPU_OP), trace.slices.parent)
        self._ops: Int64 = ops[around[ops] == NONE]
        self._copies = dict(self._copies_in())
        """Place of an outermost op → end and bytes of its copy from pinned memory."""
        self._waits = np.sort(trace.slices.ts[trace.where(_is_wait, Category.RUNTIME)])
        self._pinned = np.sort(trace.slices.ts[trace.where(_PINS.__contains__, Category.CPU_OP)])

    def pairs(self) -> Iterator[tuple[_Site, _Pair]]:
        """Yield each copy with the next fill that another copy of its site follows."""
        last: dict[_Site, int] = {}
        for place in sorted(self._copies):
            fill = place - 1
            if fill >= 0 and self._fills(fill) and self._track(fill) == self._track(place):
                site = self._site(place)
                if site in last:
                    yield site, self._pair(last[site], fill)
                last[site] = place

    def _copies_in(self) -> Iterator[tuple[int, tuple[int, int]]]:
        trace, s = self._trace, self._trace.slices
        works = trace.where(lambda name: name.startswith("Memcpy HtoD (Pinned"), Category.MEMCPY)
        calls = trace.calls_of(works)
        for work, call in zip(works.tolist(), calls.tolist(), strict=True):
            op = NONE if call == NONE else self._paths.outermost_op(call)
            if op != NONE:
                place = int(self._ops.searchsorted(op))
                yield place, (int(s.end[work]), int(s.bytes[work]))

    def _pair(self, copy: int, fill: int) -> _Pair:
        s, first, second = self._trace.slices, int(self._ops[copy]), int(self._ops[fill])
        begin, end = int(s.end[first]), int(s.ts[second])
        made = fill - 1 > copy and self._name(fill - 1) in _MAKES
        apart = made or any(
            times.searchsorted(begin) < times.searchsorted(end) for times in (self._waits, self._pinned)
        )
        return _Pair(first, second, end + HOST_NS < self._copies[copy][0], apart)

    def _site(self, place: int) -> _Site:
        names = self._paths.to(int(self._ops[place])).names.every
        return self._track(place), names, self._name(place - 1), self._copies[place][1]

    def _fills(self, place: int) -> bool:
        """Return whether an outermost op fills a tensor of the host: it makes no call of the runtime."""
        if self._name(place) not in _FILLS:
            return False
        s, row = self._trace.slices, int(self._ops[place])
        after = row + 1
        while after < len(s) and s.track[after] == s.track[row] and s.ts[after] < s.end[row]:
            if s.category[after] in (Category.RUNTIME, Category.DRIVER):
                return False
            after += 1
        return True

    def _name(self, place: int) -> str:
        return self._trace.name(int(self._ops[place]))

    def _track(self, place: int) -> int:
        return int(self._trace.slices.track[self._ops[place]])


def _is_wait(name: str) -> bool:
    """Return whether a call of the host waits, or asks whether it would have to."""
    return is_query(name) or is_event_synchronize(name) or is_stream_synchronize(name) or is_device_synchronize(name)
