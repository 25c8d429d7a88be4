"""One blocking call with everything a rule may ask of it: the value between finding calls and naming them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from syncscan.detect.neighbours import WRAPPER, Neighbours
from syncscan.model.trace import NONE, Category, Trace

_LIBRARIES = re.compile(
    r"(^|/)(site-packages|dist-packages|lib/python3\.\d+)/"
    r"|^(torch|torchvision|torchaudio|torchmetrics|functorch|torch_\w+|transformers"
    r"|accelerate|lightning|lightning_fabric|pytorch_lightning|deepspeed|tqdm|wandb|tensorboard|tensorboardX|logging|numpy"
    r"|scipy|sklearn|ignite|fsspec|contextlib\.py|threading\.py)[/.(]"
)
_OP, _SCOPE = int(Category.CPU_OP), int(Category.ANNOTATION)
_INTEL = {"D2M": "DtoH", "D2H": "DtoH", "M2D": "HtoD", "H2D": "HtoD", "D2D": "DtoD", "D2S": "DtoD", "S2D": "DtoD"}
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)")


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
    track: int
    """The host thread's track."""
    around: int
    """Row of the innermost host slice around it; NONE at the top."""
    neighbours: Neighbours
    bytes: int = NONE
    """Size of its copy; NONE without."""
    launches: int = 0
    """How many launches of the trace waited for their own kernel; only on the one call that stands for them all."""

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
        """`DtoH`, `HtoD`, `DtoD`, … of its copy; empty without a copy. Intel's `D2M` and `M2D` are read as the same."""
        word = (self.copy.split() or [""])[1:2]
        return _INTEL.get(word[0].partition("(")[0], word[0]) if word else ""

    @property
    def pageable(self) -> bool:
        """True when its copy touches pageable host memory (HIP traces don't say: then False)."""
        return "Pageable" in self.copy

    @property
    def pinned(self) -> bool:
        """True when its copy touches pinned host memory (HIP traces don't say: then False)."""
        return "Pinned" in self.copy

    @property
    def scalar(self) -> bool:
        """True when the wait is for one number: `item()` and everything that goes through it."""
        return "aten::_local_scalar_dense" in self.ops

    @property
    def synchronises(self) -> bool:
        """True for a synchronise of a device, stream or event that has no copy with it."""
        return not self.copy and any("ynchronize" in api or api.endswith(" Sync") for api in self.apis)

    @cached_property
    def _ancestors(self) -> tuple[int, ...]:
        return () if self.around == NONE else (*self.trace.ancestors(self.around), self.around)

    @cached_property
    def chain(self) -> tuple[int, ...]:
        """Rows of the ops around it on its thread, outermost first, annotations left out."""
        category = self.trace.slices.category
        return tuple(r for r in self._ancestors if category[r] == _OP)

    @cached_property
    def ops(self) -> tuple[str, ...]:
        """Names of the ops around it, outermost first: `aten::index`, `aten::nonzero`."""
        return tuple(self.trace.name(r) for r in self.chain)

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        """Names of the annotations around it, outermost first, the profiler's steps left out."""
        category = self.trace.slices.category
        names = (self.trace.name(r) for r in self._ancestors if category[r] == _SCOPE)
        return tuple(n for n in names if not n.startswith("ProfilerStep"))

    @cached_property
    def frames(self) -> tuple[str, ...]:
        """Names of the Python frames around it, outermost first; empty where neither profiler nor capture took any."""
        f = self.trace.frames
        if not len(f):
            exact = self.neighbours.stacks.of(self.rows, self.chain)
            return tuple(map(str, exact.frames)) if exact and not exact.borrowed else ()
        lo, hi = np.searchsorted(f.track, [self.track, self.track + 1])
        upto = lo + int(np.searchsorted(f.ts[lo:hi], self.ts, side="right"))
        around = lo + np.flatnonzero(f.ts[lo:upto] + f.dur[lo:upto] >= self.end)
        return tuple(self.trace.strings[n] for n in f.name[around])

    @property
    def profiled(self) -> bool:
        """True in a trace with the profiler's own stacks, which show C functions besides Python's."""
        return len(self.trace.frames) > 0

    @cached_property
    def framework_frames(self) -> tuple[str, ...]:
        """The frames of libraries between the program's own innermost frame and this call, outermost first."""
        inner: list[str] = []
        for frame in reversed(self.frames):
            if _FRAME.fullmatch(frame) and not _LIBRARIES.search(frame):
                break
            inner.append(frame)
        return tuple(inner[::-1])

    @cached_property
    def before(self) -> tuple[str, ...]:
        """Names of the outermost ops and annotations that came before it on its thread, the nearest last; up to 64."""
        start = int(self.trace.slices.ts[self._worker]) if self._worker != NONE else self.ts
        return self.neighbours.before(self.track, start, set(self._ancestors))

    @cached_property
    def after(self) -> tuple[str, ...]:
        """Names of the outermost ops, annotations and runtime calls that came after it, the nearest first; up to 64."""
        end = int(self.trace.slices.end[self._worker]) if self._worker != NONE else self.end
        return self.neighbours.after(self.track, end)

    def followed_within(self, ns: int) -> bool:
        """True if the next op began that soon: measured, 1 to 3 µs where it takes the number, 4 and more elsewhere."""
        end = int(self.trace.slices.end[self._worker]) if self._worker != NONE else self.end
        start = self.neighbours.next_start(self.track, end)
        return start is not None and start - end <= ns

    @cached_property
    def since_scope(self) -> tuple[str, ...]:
        """Names of the outermost ops and annotations that began since the innermost annotation around it."""
        scope = next((r for r in self._ancestors[::-1] if self.trace.slices.category[r] == _SCOPE), NONE)
        start = int(self.trace.slices.ts[scope]) if scope != NONE else 0
        return self.neighbours.between(self.track, start + 1, self.ts)

    @cached_property
    def _worker(self) -> int:
        """The row of the outermost op around it that does work itself, NONE without."""
        return next((r for r, name in zip(self.chain, self.ops, strict=True) if not WRAPPER.match(name)), NONE)

    @property
    def thread(self) -> str:
        """The name of its thread, as the trace gives it."""
        return self.trace.tracks[self.track].thread

    def under(self, *names: str) -> bool:
        """True if any op around it has one of these names."""
        return any(op in names for op in self.ops)

    def first(self, *names: str) -> str:
        """The outermost op around it that has one of these names; empty without."""
        return next((op for op in self.ops if op in names), "")

    def in_scope(self, *parts: str) -> bool:
        """True if the name of any annotation around it contains one of these texts."""
        return any(part in scope for scope in self.scopes for part in parts)

    def in_frame(self, *parts: str) -> bool:
        """True if any Python frame around it contains one of these texts."""
        return any(part in frame for frame in self.frames for part in parts)

    def in_library(self, *parts: str) -> bool:
        """True if one of `framework_frames` contains one of these texts."""
        return any(part in frame for frame in self.framework_frames for part in parts)

    def called(self, *methods: str) -> bool:
        """True if the innermost frame is a C function or method of one of these names (`item`, `tolist`)."""
        last = self.frames[-1] if self.frames else ""
        return any(last.startswith((f"<built-in method {m} ", f"<built-in function {m}>")) for m in methods)

    @property
    def op(self) -> str:
        """The op a user would recognise: the outermost one that isn't autograd's own wrapper; empty without ops."""
        for name in self.ops:
            if not name.startswith("autograd::engine"):
                return name
        return ""

    @property
    def top(self) -> str:
        """The outermost op that does work itself: wrappers, backward nodes and compiled regions are passed over."""
        return next((op for op in self.ops if not WRAPPER.match(op)), "")

    @property
    def leaf(self) -> str:
        """The innermost op; empty without ops."""
        return self.ops[-1] if self.ops else ""

    @property
    def backward(self) -> str:
        """The name of the autograd node around it, e.g. `IndexBackward0`; empty outside of a backward pass."""
        return next((op for op in self.ops if _NODE.fullmatch(op)), "")

    @property
    def sequence(self) -> int:
        """The autograd sequence number of the ops around it, NONE without."""
        numbers = [int(self.trace.slices.sequence[r]) for r in self.chain]
        return next((n for n in numbers if n != NONE), NONE)


_NODE = re.compile(r"\w+Backward\d*")


__all__ = ["Call"]
