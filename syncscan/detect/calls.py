"""From a trace's runtime slices to its blocking calls: which host calls wait for the device, each with its copy."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from syncscan.detect.call import Call
from syncscan.model.trace import NONE, Category, Int64, Trace
from syncscan.model.work import DeviceWork

SYNCHRONISE = re.compile(
    r"(cuda|cu|hip|mtia|musa|xpu|privateuse1)?_?(Stream|Device|Event|Ctx|Context|Queue)_?Synchronize"
    r"|ze(CommandList|CommandQueue|Event|Fence)Host\w*|zeCommandQueueSynchronize|ur(QueueFinish|EventWait)",
    re.IGNORECASE,
)
"""Calls that return once the device has reached a point (catalogue 1.2, 1.4)."""
BLOCKING_COPY = re.compile(
    r"(cuda|hip)Memcpy(2D|3D|ToSymbol|FromSymbol)?|hipMemcpy(WithStream|DtoH|HtoD)|cuMemcpy(DtoH|HtoD)"
)
"""Copies that are synchronous by definition, but for device to device (catalogue 1.2)."""
ASYNC_COPY = re.compile(r"(cuda|hip)Memcpy(2D|3D)?Async|cuMemcpy(DtoH|HtoD)Async")
"""Copies that wait only for pageable host memory."""
ALLOCATOR = re.compile(
    r"(cuda|hip)(Free|Malloc|HostAlloc|MallocHost|HostMalloc|FreeHost|HostFree)|cuMem(Unmap|Release)"
)
"""Calls that may make the device drain (catalogue 1.2)."""

_SUFFIX = re.compile(r"(_ptsz|_ptds|_v\d+)+$")
_HELD_NS = 20_000
_ADJACENT_NS = 20_000


def api_name(name: str) -> str:
    """A runtime call's name without its version suffix: `cudaStreamSynchronize_ptsz` → `cudaStreamSynchronize`."""
    return _SUFFIX.sub("", name)


def blocking_calls(trace: Trace, work: DeviceWork) -> Iterator[Call]:
    """All calls of a trace that can wait for the device, in order of thread and time; the profiler's own is left out.

    A copy and the synchronise behind it in the same op are one call.
    """
    return _Finder(trace, work).calls()


class _Finder:
    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self.trace, self.work = trace, work
        s = self.trace.slices
        self.runtime = np.flatnonzero(trace.is_category(Category.RUNTIME, Category.DRIVER))
        self.is_sync = self._mask(SYNCHRONISE)
        self.is_copy = self._mask(ASYNC_COPY) | self._mask(BLOCKING_COPY)
        self.copy_of = self._copies(s.correlation)
        self.own = profiler_sync(trace)

    def calls(self) -> Iterator[Call]:
        for group in self._groups():
            call = self._call(group)
            if call is not None:
                yield call

    def _mask(self, pattern: re.Pattern[str]) -> np.ndarray:  # type: ignore[type-arg]
        return self.trace.named(lambda n: pattern.fullmatch(api_name(n)))[self.runtime]

    def _copies(self, correlation: Int64) -> dict[int, int]:
        rows = np.flatnonzero(self.trace.is_category(Category.MEMCPY) & (correlation != NONE))
        return dict(zip(correlation[rows].tolist(), rows.tolist(), strict=True))

    def _groups(self) -> Iterator[tuple[int, ...]]:
        """Rows of candidate calls; a copy directly before a synchronise joins it."""
        candidate = self.is_sync | self.is_copy | self._mask(ALLOCATOR)
        taken = -1
        for k in np.flatnonzero(candidate).tolist():
            if k <= taken or self.runtime[k] == self.own:
                continue
            row = int(self.runtime[k])
            after = self._next(k)
            if self.is_copy[k] and after is not None and self._belongs(row, int(self.runtime[after])):
                taken = after
                yield row, int(self.runtime[after])
            else:
                yield (row,)

    def _next(self, k: int) -> int | None:
        """The synchronise that follows this call on its thread, with nothing but queries between."""
        for j in range(k + 1, min(k + 4, len(self.runtime))):
            if self.is_sync[j]:
                return j
            if not _QUERY.fullmatch(api_name(self.trace.name(int(self.runtime[j])))):
                return None
        return None

    def _belongs(self, copy: int, sync: int) -> bool:
        s = self.trace.slices
        if s.track[copy] != s.track[sync] or s.parent[copy] != s.parent[sync]:
            return False
        parent = int(s.parent[copy])
        if parent != NONE and s.category[parent] == Category.CPU_OP:
            return True
        return bool(s.ts[sync] - s.end[copy] < _ADJACENT_NS)

    def _call(self, rows: tuple[int, ...]) -> Call | None:
        s = self.trace.slices
        names = tuple(api_name(self.trace.name(r)) for r in rows)
        copy_row = self.copy_of.get(int(s.correlation[rows[0]]), NONE)
        copy = self.trace.name(copy_row) if copy_row != NONE else _hip_copy(int(s.copy_kind[rows[0]]))
        device, stream = self._where(rows, names, copy_row)
        call = Call(
            trace=self.trace,
            rows=rows,
            api=names[int(np.argmax(s.dur[list(rows)]))],
            apis=names,
            copy=copy,
            device=device,
            stream=stream,
            waited=self._waited(rows, device, stream),
        )
        return call if len(rows) > 1 or SYNCHRONISE.fullmatch(names[0]) or _blocks(call, copy_row) else None

    def _where(self, rows: tuple[int, ...], names: tuple[str, ...], copy_row: int) -> tuple[int, int]:
        s = self.trace.slices
        if copy_row != NONE:
            return int(s.device[copy_row]), int(s.stream[copy_row])
        device, stream = self._last_launch(rows[0])
        return device, stream if "Stream" in names[-1] or "Event" in names[-1] else NONE

    def _last_launch(self, row: int) -> tuple[int, int]:
        """Device and stream of the work that this thread launched last before the call; the device's first without."""
        s = self.trace.slices
        at = int(np.searchsorted(self._launches[0], row)) - 1
        if at >= 0 and s.track[self._launches[0][at]] == s.track[row]:
            device_row = int(self._launches[1][at])
            return int(s.device[device_row]), int(s.stream[device_row])
        devices = self.work.devices
        return (devices[0] if devices else NONE), NONE

    @property
    def _launches(self) -> tuple[Int64, Int64]:
        if not hasattr(self, "_launch_pairs"):
            s = self.trace.slices
            rows = self.trace.device_rows
            pairs = [
                (self.trace.launches.get(c, NONE), r)
                for c, r in zip(s.correlation[rows].tolist(), rows.tolist(), strict=True)
            ]
            pairs = sorted(p for p in pairs if p[0] != NONE)
            self._launch_pairs = (np.array([p[0] for p in pairs], np.int64), np.array([p[1] for p in pairs], np.int64))
        return self._launch_pairs

    def _waited(self, rows: tuple[int, ...], device: int, stream: int) -> bool:
        s = self.trace.slices
        start, end = int(s.ts[rows[0]]), int(s.ts[rows[-1]] + s.dur[rows[-1]])
        before = self.work.of(device, stream).last_end(start) if device != NONE else None
        return before is not None and before - start > _HELD_NS and end >= before - _HELD_NS


_QUERY = re.compile(r"\w*(IsCapturing|GetCaptureInfo|EventQuery|StreamQuery|PointerGetAttributes)\w*")


def _hip_copy(kind: int) -> str:
    return {1: "Memcpy HtoD", 2: "Memcpy DtoH", 3: "Memcpy DtoD"}.get(kind, "")


def _blocks(call: Call, copy_row: int) -> bool:
    """Whether a copy or allocator call without a synchronise behind it can hold the host."""
    name = call.apis[0]
    if ALLOCATOR.fullmatch(name):
        return True
    if call.direction in ("DtoD", "PtoP"):
        return False
    if BLOCKING_COPY.fullmatch(name):
        return True
    if call.pageable and call.direction == "DtoH":
        return True
    if call.pageable or "Host" in call.copy:
        return call.waited
    return False


def profiler_sync(trace: Trace) -> int:
    """The row of the profiler's own closing device synchronise, NONE without.

    `torch.autograd.profiler.profile.__exit__` synchronises the device before it stops collecting: a device synchronise
    outside every step and op, with no launch after it (torch/autograd/profiler.py).
    """
    s = trace.slices
    rows = np.flatnonzero(trace.named(lambda n: re.fullmatch(r"(cuda|hip|xpu|mtia)?DeviceSynchronize", api_name(n))))
    rows = rows[np.isin(s.category[rows], np.array([Category.RUNTIME, Category.DRIVER], np.int8))]
    if not len(rows):
        return NONE
    last = int(rows[np.argmax(s.ts[rows])])
    outside = all(not (step.ts <= s.ts[last] < step.end) for step in trace.steps)
    alone = all(s.category[a] != Category.CPU_OP for a in trace.ancestors(last))
    launching = [row for c in s.correlation[trace.device_rows].tolist() if (row := trace.launches.get(c)) is not None]
    final = not launching or int(s.ts[launching].max()) <= int(s.ts[last])
    return last if outside and alone and final else NONE
