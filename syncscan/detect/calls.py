"""From a trace's runtime slices to its blocking calls: which host calls wait for the device, each with its copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from syncscan.detect.call import Call
from syncscan.detect.launches import held_launch
from syncscan.detect.neighbours import Neighbours
from syncscan.model.arrays import Bool, Int64
from syncscan.model.device_work import DeviceWork
from syncscan.model.trace import NONE, Category, Trace

SYNCHRONISE = re.compile(
    r"\w*(Stream|Device|Event|Ctx|Context|Queue|List|Fence|Host)_?Synchronize\w*|synchronize"
    r"|ze(CommandList|CommandQueue|Event|Fence)Host\w*|ur(QueueFinish|EventWait)",
    re.IGNORECASE,
)
"""Calls that return once the device has reached a point (catalogue 1.2, 1.4)."""
BLOCKING_COPY = re.compile(
    r"(cuda|hip)Memcpy(2D|3D|ToSymbol|FromSymbol|ToArray|FromArray)?|hipMemcpy(WithStream|DtoH|HtoD)|cuMemcpy(DtoH|HtoD)"
)
"""Copies that are synchronous by definition, but for device to device (catalogue 1.2)."""
ASYNC_COPY = re.compile(r"(cuda|hip)Memcpy(2D|3D)?Async|cuMemcpy(DtoH|HtoD)Async")
"""Copies that wait only for pageable host memory."""
FREE = re.compile(r"(cuda|hip)Free")
"""Gives memory back to the driver: the device drains first (catalogue 1.2, measured)."""
ALLOCATE = re.compile(
    r"(cuda|hip)(Malloc|HostAlloc|MallocHost|HostMalloc|HostRegister|FreeHost|HostFree|HostUnregister)"
    r"|cuMem(Create|Map|Unmap|Release)"
)
"""Allocator calls that take long but wait for queued work only sometimes."""
NEVER = re.compile(
    r"\w*(Launch|Query|IsCapturing|GetCaptureInfo|GetAttributes|Memset|StreamWaitEvent|StreamWaitValue|EventRecord"
    r"|EnqueueEventsWait|PushCallConfiguration|PopCallConfiguration|Append|Occupancy|LoadData|LinkComplete"
    r"|Instantiate|EndCapture|ExecUpdate|Module|Library|FuncGet)\w*"
)
"""Calls that don't wait for the queue to drain; a launch that is held has a full queue before it: back-pressure."""
DEVICE_SIDE = re.compile(r"Stream Wait Event|GPU_BARRIER\w*")
"""Rows of the synchronisation categories that make the device wait, not the host."""

_WAITS = re.compile("|".join(p.pattern for p in (SYNCHRONISE, BLOCKING_COPY, ASYNC_COPY, FREE)), re.IGNORECASE)
_SUFFIX = re.compile(r"(_ptsz|_ptds|_v\d+)+$")
_PASSED_OVER = re.compile(
    r"\w*(IsCapturing|GetCaptureInfo|EventQuery|StreamQuery|PointerGetAttributes|PeekAtLastError)\w*"
)
_HELD_NS = 20_000
_MEASURED_NS = 100_000
_ADJACENT_NS = 20_000


def api_name(name: str) -> str:
    """A runtime call's name without its version suffix: `cudaStreamSynchronize_ptsz` → `cudaStreamSynchronize`."""
    return _SUFFIX.sub("", name)


def blocking_calls(trace: Trace, work: DeviceWork) -> Iterator[Call]:
    """All calls of a trace that can wait for the device, in order of thread and time; the profiler's own is left out.

    A copy and the synchronise behind it in the same op are one call, and so is a call inside another. Launches are
    none, but where every launch waits for its kernel (`CUDA_LAUNCH_BLOCKING`): then the longest stands for them all.
    """
    return _Finder(trace, work).calls()


class _Finder:
    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self.trace, self.work = trace, work
        self.runtime = np.flatnonzero(trace.is_category(Category.RUNTIME, Category.DRIVER))
        self.is_sync = self._mask(SYNCHRONISE)
        self.is_copy = self._mask(ASYNC_COPY) | self._mask(BLOCKING_COPY)
        self.copy_of = self._rows_by_correlation(Category.MEMCPY)
        self.sync_of = self._rows_by_correlation(Category.SYNC)
        self.own = profiler_sync(trace)
        self.neighbours = Neighbours(trace)

    def calls(self) -> Iterator[Call]:
        found = [call for group in self._groups() if (call := self._call(group)) is not None]
        found += self._unseen(found)
        held = held_launch(self.trace)
        if held is not None:
            found.append(self._of_launch(*held))
        yield from sorted(found, key=lambda c: (c.track, c.ts))

    def _mask(self, pattern: re.Pattern[str]) -> Bool:
        return self.trace.named(lambda n: pattern.fullmatch(api_name(n)))[self.runtime]

    def _rows_by_correlation(self, category: Category) -> dict[int, int]:
        correlation = self.trace.slices.correlation
        rows = np.flatnonzero(self.trace.is_category(category) & (correlation != NONE))
        return dict(zip(correlation[rows].tolist(), rows.tolist(), strict=True))

    def _groups(self) -> Iterator[tuple[int, ...]]:
        """Rows of candidate calls; a copy directly before a synchronise joins it."""
        named = self.is_sync | self.is_copy | self._mask(FREE) | self._mask(ALLOCATE)
        parent = self.trace.slices.parent[self.runtime]
        others = ~self._mask(NEVER) & (self.trace.slices.dur[self.runtime] >= _MEASURED_NS)
        candidate = named | (others & ~np.isin(self.runtime, parent[named]))
        taken, inside = -1, set(self.runtime[named].tolist())
        for k in np.flatnonzero(candidate).tolist():
            row = int(self.runtime[k])
            if k <= taken or row == self.own or int(parent[k]) in inside:
                continue
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
            if not _PASSED_OVER.fullmatch(api_name(self.trace.name(int(self.runtime[j])))):
                return None
        return None

    def _belongs(self, copy: int, sync: int) -> bool:
        s = self.trace.slices
        if s.track[copy] != s.track[sync] or s.parent[copy] != s.parent[sync]:
            return False
        device_copy = self.copy_of.get(int(s.correlation[copy]), NONE)
        if device_copy != NONE and "DtoD" in self.trace.name(device_copy):
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
            waited=self._waited(rows, device, stream, names[0]),
            track=int(s.track[rows[0]]),
            around=self._op_around(rows[0]),
            neighbours=self.neighbours,
            bytes=int(s.bytes[copy_row]) if copy_row != NONE else NONE,
        )
        return call if len(rows) > 1 or SYNCHRONISE.fullmatch(names[0]) or _blocks(call) else None

    def _op_around(self, row: int) -> int:
        """The innermost host slice around a call: by time, or by `External id` where calls have tracks of their own."""
        s = self.trace.slices
        op = self._ops_by_id.get(int(s.external[row]), NONE)
        if s.parent[row] != NONE or op == NONE:
            return int(s.parent[row])
        return op if s.ts[op] <= s.ts[row] and s.end[row] <= s.end[op] else NONE

    @cached_property
    def _ops_by_id(self) -> dict[int, int]:
        """Rows of the ops by their `External id`; empty where calls lie on the threads of the ops, as they should."""
        s = self.trace.slices
        ops = np.flatnonzero((s.category == int(Category.CPU_OP)) & (s.external != NONE))
        if len(np.intersect1d(s.track[ops], s.track[self.runtime])):
            return {}
        return dict(zip(s.external[ops].tolist(), ops.tolist(), strict=True))

    def _of_launch(self, row: int, launches: int) -> Call:
        s = self.trace.slices
        name = api_name(self.trace.name(row))
        track, around = int(s.track[row]), self._op_around(row)
        where = self._last_launch(row)
        call = (self.trace, (row,), name, (name,), "", *where, True, track, around, self.neighbours)
        return Call(*call, launches=launches)

    def _where(self, rows: tuple[int, ...], names: tuple[str, ...], copy_row: int) -> tuple[int, int]:
        s = self.trace.slices
        sync_row = self.sync_of.get(int(s.correlation[rows[-1]]), NONE)
        for known in (copy_row, sync_row):
            if known != NONE and s.device[known] != NONE:
                return int(s.device[known]), int(s.stream[known])
        device, stream = self._last_launch(rows[0])
        return device, stream if "Stream" in names[-1] or "Event" in names[-1] else NONE

    def _last_launch(self, row: int) -> tuple[int, int]:
        """Device and stream of the work that this thread launched last before the call; the device's first without."""
        s = self.trace.slices
        launches, work = self._launches
        at = int(np.searchsorted(launches, row, side="right")) - 1
        if at >= 0 and s.track[launches[at]] == s.track[row]:
            device_row = int(work[at])
            return int(s.device[device_row]), int(s.stream[device_row])
        devices = self.work.devices
        return (devices[0] if devices else NONE), NONE

    @cached_property
    def _launches(self) -> tuple[Int64, Int64]:
        """Rows of calls that launched device work, ascending, and the row of the work of each."""
        rows = self.trace.device_rows
        calls = self.trace.calls_of(rows)
        known = np.flatnonzero(calls != NONE)
        known = known[np.argsort(calls[known], kind="stable")]
        return calls[known], rows[known]

    def _waited(self, rows: tuple[int, ...], device: int, stream: int, name: str) -> bool:
        """Whether the host was held until work that was queued before had ended, for most of the call.

        Of calls that take long also with nothing queued, only one that returned directly after the work counts.
        """
        s = self.trace.slices
        start, end = int(s.ts[rows[0]]), int(s.ts[rows[-1]] + s.dur[rows[-1]])
        before = self.work.of(device, stream).last_end(start) if device != NONE else None
        if before is None or before - start <= _HELD_NS or end < before - _HELD_NS:
            return False
        if not (_WAITS.fullmatch(name)) and end - before > _MEASURED_NS:
            return False
        return 2 * (min(before, end) - start) >= end - start

    def _unseen(self, found: list[Call]) -> list[Call]:
        """Waits that only a synchronisation row shows: driver calls of extensions, runtime calls that were filtered."""
        s = self.trace.slices
        of_host = self.trace.is_category(Category.SYNC) & ~self.trace.named(DEVICE_SIDE.fullmatch)
        rows = np.flatnonzero(of_host)
        rows = rows[self.trace.calls_of(rows) == NONE].tolist()
        spans = np.array([(c.ts, c.end) for c in found], np.int64).reshape(-1, 2)
        calls = (self._of_sync_row(r) for r in rows if not _covered(int(s.ts[r]), int(s.end[r]), spans))
        return [call for call in calls if call is not None]

    def _of_sync_row(self, row: int) -> Call | None:
        s = self.trace.slices
        track = self._host_track(row)
        if track == NONE:
            return None
        name = self.trace.name(row)
        device = int(s.device[row]) if s.device[row] != NONE else next(iter(self.work.devices), NONE)
        stream = NONE if name == "Context Sync" else int(s.stream[row])
        around = self._around(track, int(s.ts[row]), int(s.end[row]))
        return Call(self.trace, (row,), name, (name,), "", device, stream, True, track, around, self.neighbours)

    def _host_track(self, row: int) -> int:
        """The thread of a synchronisation row: the one its tid names, or the quiet one that called the runtime last."""
        s = self.trace.slices
        tracks = np.unique(s.track[self.trace.is_category(Category.CPU_OP, Category.ANNOTATION, Category.RUNTIME)])
        own = self.trace.tracks[int(s.track[row])]
        if own.pid == "-1":
            return next((int(t) for t in tracks if self.trace.tracks[int(t)].tid == own.tid), NONE)
        latest, best = -1, NONE
        for track in tracks.tolist():
            calls = self.runtime[s.track[self.runtime] == track]
            at = int(np.searchsorted(s.ts[calls], s.ts[row], side="right"))
            quiet = at == len(calls) or s.ts[calls[at]] >= s.end[row]
            if at and quiet and s.ts[calls[at - 1]] > latest:
                latest, best = int(s.ts[calls[at - 1]]), track
        return best

    def _around(self, track: int, start: int, end: int) -> int:
        """The innermost op or annotation of a thread that contains this interval."""
        s = self.trace.slices
        rows = self.trace.track_rows(track)
        row = rows.start + int(np.searchsorted(s.ts[rows], start, side="right")) - 1
        while row >= rows.start and not (
            s.end[row] >= end and s.category[row] in (Category.CPU_OP, Category.ANNOTATION)
        ):
            row = int(s.parent[row])
        return row if row >= rows.start else NONE


def _hip_copy(kind: int) -> str:
    return {1: "Memcpy HtoD", 2: "Memcpy DtoH", 3: "Memcpy DtoD"}.get(kind, "")


def _covered(start: int, end: int, spans: Int64) -> bool:
    """Whether one of these (start, end) takes up half of this interval."""
    overlap = np.minimum(spans[:, 1], end) - np.maximum(spans[:, 0], start)
    return bool((2 * overlap >= max(end - start, 1)).any())


def _blocks(call: Call) -> bool:
    """Whether a call that is no synchronise, and has none behind it, can hold the host."""
    name = call.apis[0]
    if FREE.fullmatch(name) or ALLOCATE.fullmatch(name):
        return True
    if call.direction in ("DtoD", "PtoP"):
        return False
    if BLOCKING_COPY.fullmatch(name):
        return True
    if ASYNC_COPY.fullmatch(name):
        if call.pageable and call.direction == "DtoH":
            return True
        return call.waited and not call.pinned
    return call.waited


def profiler_sync(trace: Trace) -> int:
    """The row of the profiler's own closing device synchronise, NONE without.

    `torch.autograd.profiler.profile.__exit__` synchronises the device before it stops collecting: a device synchronise
    outside every step and op, with no launch after it, and in a trace with stacks below the profiler's own frame
    (torch/autograd/profiler.py).
    """
    s = trace.slices
    rows = np.flatnonzero(trace.named(lambda n: re.fullmatch(r"(cuda|hip|xpu|mtia)?DeviceSynchronize", api_name(n))))
    rows = rows[np.isin(s.category[rows], np.array([Category.RUNTIME, Category.DRIVER], np.int8))]
    if not len(rows):
        return NONE
    last = int(rows[np.argmax(s.ts[rows])])
    outside = all(not (step.ts <= s.ts[last] < step.end) for step in trace.steps)
    alone = all(s.category[a] not in (Category.CPU_OP, Category.ANNOTATION) for a in trace.ancestors(last))
    launching = trace.calls_of(trace.device_rows)
    launching = launching[launching != NONE]
    final = not len(launching) or int(s.ts[launching].max()) <= int(s.ts[last])
    return last if outside and alone and final and not _programs_own(trace, last) else NONE


def _programs_own(trace: Trace, row: int) -> bool:
    """Whether the frames around this call are there and hold no profiler."""
    f, s = trace.frames, trace.slices
    inside = (f.track == s.track[row]) & (f.ts <= s.ts[row]) & (f.end >= s.end[row])
    names = [trace.strings[n] for n in f.name[inside]]
    synchronises = any("synchronize" in n for n in names)
    return synchronises and not any("profiler" in n for n in names)
