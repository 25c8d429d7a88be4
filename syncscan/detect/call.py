"""One blocking call with everything a rule may ask of it: the value between finding calls and naming them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from syncscan.model.trace import NONE, Category, Trace


@dataclass(frozen=True)
class Call:
    """A blocking runtime call, or a copy and the synchronise behind it; what rules match on.

    `rows` are its runtime slices in time order; `waited` says that the host was measurably held for work queued before.
    """

    trace: Trace
    rows: tuple[int, ...]
    api: str
    """The runtime call's name without version suffix, e.g. `cudaStreamSynchronize`; the longest of `rows`."""
    apis: tuple[str, ...]
    """Names of all `rows`."""
    copy: str
    """Name of the device copy that belongs to it, e.g. `Memcpy DtoH (Device -> Pinned)`; empty without."""
    device: int
    stream: int
    waited: bool

    @property
    def track(self) -> int:
        """The host thread's track."""
        return int(self.trace.slices.track[self.rows[0]])

    @property
    def ts(self) -> int:
        """When the first of `rows` begins, ns."""
        return int(self.trace.slices.ts[self.rows[0]])

    @property
    def end(self) -> int:
        """When the last of `rows` ends, ns."""
        s = self.trace.slices
        return int(s.ts[self.rows[-1]] + s.dur[self.rows[-1]])

    @property
    def direction(self) -> str:
        """`DtoH`, `HtoD`, `DtoD`, … of its copy; empty without a copy."""
        words = self.copy.split()
        return words[1] if len(words) > 1 else ""

    @property
    def pageable(self) -> bool:
        """True when its copy touches pageable host memory (HIP traces don't say: then False)."""
        return "Pageable" in self.copy

    @cached_property
    def chain(self) -> tuple[int, ...]:
        """Rows of the ops around it on its thread, outermost first, annotations left out."""
        category = self.trace.slices.category
        return tuple(r for r in self.trace.ancestors(self.rows[0]) if category[r] == Category.CPU_OP)

    @cached_property
    def ops(self) -> tuple[str, ...]:
        """Names of the ops around it, outermost first: `aten::index`, `aten::nonzero`."""
        return tuple(self.trace.name(r) for r in self.chain)

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        """Names of the annotations around it, outermost first, the profiler's steps left out."""
        category = self.trace.slices.category
        names = (self.trace.name(r) for r in self.trace.ancestors(self.rows[0]) if category[r] == Category.ANNOTATION)
        return tuple(n for n in names if not n.startswith("ProfilerStep"))

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """Names of the Python frames around it, outermost first; empty in a trace without stacks."""
        f = self.trace.frames
        lo, hi = np.searchsorted(f.track, [self.track, self.track + 1])
        upto = lo + int(np.searchsorted(f.ts[lo:hi], self.ts, side="right"))
        around = lo + np.flatnonzero(f.ts[lo:upto] + f.dur[lo:upto] >= self.end)
        return tuple(self.trace.strings[n] for n in f.name[around])

    @property
    def thread(self) -> str:
        """The name of its thread, as the trace gives it."""
        return self.trace.tracks[self.track].thread

    def under(self, *names: str) -> bool:
        """True if any op around it has one of these names."""
        return any(op in names for op in self.ops)

    def in_frame(self, *parts: str) -> bool:
        """True if any Python frame around it contains one of these texts."""
        return any(part in frame for frame in self.frames for part in parts)

    @property
    def op(self) -> str:
        """The op a user would recognise: the outermost one that isn't autograd's own wrapper; empty without ops."""
        for name in self.ops:
            if not name.startswith("autograd::engine"):
                return name
        return ""

    @property
    def leaf(self) -> str:
        """The innermost op; empty without ops."""
        return self.ops[-1] if self.ops else ""

    @property
    def sequence(self) -> int:
        """The autograd sequence number of the ops around it, NONE without."""
        numbers = [int(self.trace.slices.sequence[r]) for r in self.chain]
        return next((n for n in numbers if n != NONE), NONE)
