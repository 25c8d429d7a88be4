"""The facts of one blocking call, as `calls` finds them in a trace: what was called, when, and what it waited for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.finding import Awaited, Place
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.trace import NONE, Trace

_INTEL = {"D2M": "DtoH", "D2H": "DtoH", "M2D": "HtoD", "H2D": "HtoD", "D2D": "DtoD", "D2S": "DtoD", "S2D": "DtoD"}
"""How Intel's profiler writes the direction of a copy: to and from memory, the device and shared memory."""


class BlockingCall(msgspec.Struct, frozen=True):
    """A runtime call that can block the host, or a copy and the synchronise behind it: one wait. Times are in ns."""

    rows: tuple[int, ...]
    """Its runtime slices in time order."""
    api: str
    """The runtime call's name without version suffix, e.g. `cudaStreamSynchronize`; the longest of `rows`."""
    apis: tuple[str, ...]
    """Names of all `rows`; one where they are the queries of a loop."""
    ts: int
    """When the first of `rows` begins."""
    end: int
    """When the last of `rows` ends."""
    track: int
    """The host thread's track."""
    around: int
    """Row of the innermost host slice around it; NONE at the top."""
    device: int
    stream: int
    """What it waits for; NONE for all streams of the device."""
    waited: bool
    """Whether the host was measurably blocked for work queued before."""
    awaited: Awaited | None = None
    """What the last of `rows` waited for; None where no device worked."""
    copy: str = ""
    """Name of the device copy that belongs to it, e.g. `Memcpy DtoH (Device -> Pinned)`; empty without."""
    bytes: int = NONE
    """Size of its copy; NONE without."""
    launches: int = 0
    """How many launches of the trace waited for their own kernel; only on the one call that stands for them all."""

    @property
    def direction(self) -> str:
        """`DtoH`, `HtoD`, `DtoD`, … of its copy; empty without a copy. Intel's `D2M` and `M2D` are read as the same."""
        return direction(self.copy)

    @property
    def pageable(self) -> bool:
        """True when its copy touches pageable host memory (HIP traces don't say: then False)."""
        return "Pageable" in self.copy

    @property
    def pinned(self) -> bool:
        """True when its copy touches pinned host memory (HIP traces don't say: then False)."""
        return "Pinned" in self.copy

    @property
    def synchronises(self) -> bool:
        """True for a synchronise of a device, stream or event that has no copy with it."""
        return not self.copy and any(is_synchronize(api) or api.endswith(" Sync") for api in self.apis)


class Columns(NamedTuple):
    """Where and when some calls were made."""

    tracks: Int64
    begins: Int64
    ends: Int64
    arounds: Int64
    """As `BlockingCall.around`."""


def columns_of(calls: Sequence[BlockingCall]) -> Columns:
    """The same facts of these calls, as columns."""
    return Columns(
        np.array([call.track for call in calls], np.int64),
        np.array([call.ts for call in calls], np.int64),
        np.array([call.end for call in calls], np.int64),
        np.array([call.around for call in calls], np.int64),
    )


@lru_cache(1 << 10)
def direction(copy: str) -> str:
    """`DtoH`, `HtoD`, `DtoD`, … of a copy by its name; empty without one. Intel's `D2M`, `M2D` are read as the same."""
    _, word, *_ = (*copy.split(), "", "")
    return _INTEL.get(word.partition("(")[0], word)


def wait_of_row(
    trace: Trace,
    row: int,
    *,
    api: str,
    track: int,
    around: int,
    place: Place,
    awaited: Awaited | None,
    launches: int = 0,
) -> BlockingCall:
    """The wait that one row shows by itself, without a copy; where it lies and what it waits for is given."""
    return BlockingCall(
        rows=(row,),
        api=api,
        apis=(api,),
        ts=int(trace.slices.ts[row]),
        end=int(trace.slices.end[row]),
        track=track,
        around=around,
        device=place[0],
        stream=place[1],
        waited=True,
        awaited=awaited,
        launches=launches,
    )


__all__ = ["BlockingCall", "Columns", "columns_of", "direction", "wait_of_row"]
