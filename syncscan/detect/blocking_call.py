"""Facts of a blocking call: what was called, when, and what it waited for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from syncscan.model.finding import Awaited, Place
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.trace import NONE, Trace

_INTEL = {"D2M": "DtoH", "D2H": "DtoH", "M2D": "HtoD", "H2D": "HtoD", "D2D": "DtoD", "D2S": "DtoD", "S2D": "DtoD"}
"""Intel's spelling of a copy's direction: to and from memory, the device and shared memory."""


class BlockingCall(msgspec.Struct, frozen=True):
    """A runtime call that can block the host, or a copy with the synchronize after it as one wait. Times are in ns."""

    rows: tuple[int, ...]
    """Rows of its runtime slices in time order."""
    api: str
    """The runtime call's name without version suffix, e.g. `cudaStreamSynchronize`; the longest of `rows`."""
    apis: tuple[str, ...]
    """Names of all `rows`; a single one for the queries of a loop."""
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
    """Stream that it waits for; NONE for all streams of the device."""
    waited: bool
    """Whether the host was measurably blocked by previously queued work."""
    awaited: Awaited | None = None
    """Work that the last of `rows` waited for; None if no device worked."""
    copy: str = ""
    """Name of its device copy, such as `Memcpy DtoH (Device -> Pinned)`; empty without one."""
    bytes: int = NONE
    """Size of its copy in bytes; NONE without one."""
    launches: int = 0
    """Number of launches that waited for their own kernel; only for the one call that represents them all."""

    @property
    def direction(self) -> str:
        """`DtoH`, `HtoD`, `DtoD`, …; empty without one. Intel's names are converted."""
        return direction(self.copy)

    @property
    def pageable(self) -> bool:
        """Whether its copy touches pageable host memory; False for HIP traces, which don't state it."""
        return "Pageable" in self.copy

    @property
    def pinned(self) -> bool:
        """Whether its copy touches pinned host memory; False for HIP traces, which don't state it."""
        return "Pinned" in self.copy

    @property
    def synchronizes(self) -> bool:
        """Whether it synchronizes a device, stream or event without a copy."""
        return not self.copy and any(is_synchronize(api) or api.endswith(" Sync") for api in self.apis)


@lru_cache(1 << 10)
def direction(copy: str) -> str:
    """Return `DtoH`, `HtoD`, … for a copy's name; empty without one. Intel's names are converted."""
    _, word, *_ = (*copy.split(), "", "")
    return _INTEL.get(word.partition("(")[0], word)


def bare_wait(
    trace: Trace,
    rows: Sequence[int],
    api: str,
    track: int,
    around: int,
    place: Place,
    awaited: Awaited | None,
    launches: int = 0,
) -> BlockingCall:
    """Return the wait that these rows, first to last, show by themselves, without a copy."""
    return BlockingCall(
        rows=tuple(rows),
        api=api,
        apis=(api,),
        ts=int(trace.slices.ts[rows[0]]),
        end=int(trace.slices.end[rows[-1]]),
        track=track,
        around=around,
        device=place[0],
        stream=place[1],
        waited=True,
        awaited=awaited,
        launches=launches,
    )
