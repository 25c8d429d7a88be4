"""From a trace's runtime slices to its blocking calls: which host calls wait for the device, each with its copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from operator import itemgetter

import numpy as np
from msgspec.structs import replace

from syncscan.detect.awaited import AwaitedWork, place_of
from syncscan.detect.blocking_call import BlockingCall, direction, wait_of_row
from syncscan.detect.held_copies import HeldCopies
from syncscan.detect.launches import blocking_launch
from syncscan.detect.polling import polls
from syncscan.detect.sync_rows import unseen_waits
from syncscan.detect.waits import Waits
from syncscan.facts.closing_sync import profiler_syncs
from syncscan.facts.device_work import DeviceWork
from syncscan.model import runtime_calls
from syncscan.model.arrays import Bool, Int64, among, blocks, looked_up
from syncscan.model.runtime_calls import api_name
from syncscan.model.trace import CALLS, NONE, Category, Trace

_LONG_NS = 100_000
"""From this length on a call of unknown name is looked at: with nothing queued 95 % of 459 calls took up to 35 µs.

All figures here: H200, torch 2.11, sample_traces, printed by benchmarks/detect_thresholds.py.
"""
_ADJACENT_NS = 20_000
"""Without an op around them, a copy and a synchronise this close are torch's own pair: 0.6 µs apart at the most in 3
pairs, 3.9 µs in 954 pairs inside of ops; a program needs longer to call the second from Python."""
_MOST_BETWEEN = 2
"""Queries that other versions may make between the two; torch 2.11 made none in 957 pairs."""

_ON_DEVICES = ("DtoD", "PtoP")
"""Directions of copies that no host waits for."""


def blocking_calls(trace: Trace, work: DeviceWork) -> list[BlockingCall]:
    """All calls of a trace that can wait for the device, in order of thread and time; the profiler's own is left out.

    A copy and the synchronise behind it in the same op are one call, and so is a call inside another, and a loop that
    asks until the device is done. Launches are none, but where every launch waits for its kernel
    (`CUDA_LAUNCH_BLOCKING`): then the longest stands for them all.
    """
    waits, awaited = Waits(trace, work), AwaitedWork(trace, work)
    runtime = _RuntimeCalls(trace, waits, awaited)
    blocks = cache(_blocks)
    found = [call for call in runtime.candidates() if blocks(call.apis, call.copy, call.waited)]
    others = [*unseen_waits(trace, waits, awaited, found), *polls(trace, awaited)]
    longest = blocking_launch(trace)
    if longest is not None:
        others.append(runtime.of_launches(*longest))
    return sorted([*found, *others], key=lambda call: (call.track, call.ts)) if others else found


class _RuntimeCalls:
    """The runtime and driver calls of a trace, in order of thread and time, and what each has around and behind it."""

    def __init__(self, trace: Trace, waits: Waits, awaited: AwaitedWork) -> None:
        self._trace, self._waits, self._awaited = trace, waits, awaited
        self._held = HeldCopies(trace, trace.kept(DeviceWork), awaited)
        self._rows = np.flatnonzero(trace.is_category(*CALLS))
        self._names = trace.slices.name.take(self._rows)
        self._different = sorted({*trace.names_of(Category.RUNTIME), *trace.names_of(Category.DRIVER)})
        self._api_of = {name: api_name(trace.strings[name]) for name in self._different}

    def candidates(self) -> Iterator[BlockingCall]:
        """Calls whose name or length says that they may wait; a copy and the synchronise behind it are one."""
        at = self._candidate_places()
        behind = self._synchronises_behind(at)
        free = ~among(self._rows[at], np.sort(behind))  # the others belong to the copy before them
        at, behind = at[free], behind[free]
        rows = self._rows[at]
        copies = self._trace.copy_names(rows)
        hold = np.fromiter(map(_may_hold, copies, self._apis(rows)), np.bool_, len(rows))
        others = ~self._named_at(at, runtime_calls.is_copy)
        chosen = np.flatnonzero((behind != NONE) | others | hold)
        return self._calls(rows[chosen], behind[chosen], [copies[place] for place in chosen.tolist()])

    def _calls(self, rows: Int64, behind: Int64, copies: Sequence[str]) -> Iterator[BlockingCall]:
        """The calls in these rows, each with the synchronise behind it, or NONE, and the name of its copy, or none."""
        slices = self._trace.slices
        last = np.where(behind == NONE, rows, behind)
        begin, end, around = slices.ts[rows], slices.end[last], self._around(rows)
        first_apis, last_apis = self._apis(rows), self._apis(last)
        threads, first_is_longer = slices.track[rows].tolist(), (slices.dur[rows] >= slices.dur[last]).tolist()
        supposed = self._waits.places(rows, last)
        each = list(zip(rows.tolist(), behind.tolist(), first_apis, last_apis, strict=True))
        awaited = self._awaited.of(rows, last, last_apis, threads, supposed)
        places = list(map(place_of, awaited, last_apis, supposed))
        held = self._held.until(rows, copies)
        for at in np.flatnonzero(held).tolist():
            known = awaited[at]
            awaited[at] = known and replace(known, copy_held=held.item(at))
        waited = self._waits.waited(begin, end, places, first_apis, held)
        return map(
            BlockingCall,
            [(row,) if after == NONE else (row, after) for row, after, _, _ in each],
            [one if longer else other for (_, _, one, other), longer in zip(each, first_is_longer, strict=True)],
            [(one,) if after == NONE else (one, other) for _, after, one, other in each],
            begin.tolist(),
            end.tolist(),
            threads,
            around.tolist(),
            map(itemgetter(0), places),
            map(itemgetter(1), places),
            waited.tolist(),
            awaited,
            copies,
            self._sizes(rows).tolist(),
        )

    def _sizes(self, rows: Int64) -> Int64:
        """The size in bytes of the copy of each of these calls, NONE without."""
        copies = self._trace.copies_of(rows)
        return np.where(copies == NONE, NONE, self._trace.slices.bytes[copies])

    def of_launches(self, row: int, launches: int) -> BlockingCall:
        """The one launch that stands for all where every launch waits for its kernel.

        Args:
            row: its runtime slice.
            launches: how many wait.
        """
        rows, track = np.array([row]), int(self._trace.slices.track[row])
        (api,) = self._apis(rows)
        (place,) = places = self._waits.last_launches(rows)
        (awaited,) = self._awaited.of(rows, rows, [api], [track], places)
        return wait_of_row(
            self._trace,
            row,
            api=api,
            track=track,
            around=self._around(rows).item(),
            place=place,
            awaited=awaited,
            launches=launches,
        )

    def _named(self, predicate: Callable[[str], bool]) -> Bool:
        """Which of `_rows` have a name that satisfies this; asked once a name."""
        mask: Bool = looked_up(self._names_that(predicate), self._names)
        return mask

    def _named_at(self, places: Int64, predicate: Callable[[str], bool]) -> Bool:
        """Which of `_rows` at these places do; behind the last of them it is what that does."""
        mask: Bool = self._names_that(predicate)[self._names.take(places, mode="clip")]
        return mask

    def _names_that(self, predicate: Callable[[str], bool]) -> Bool:
        """A mask over the trace's strings: names of runtime calls that satisfy this."""
        hits = np.zeros(len(self._trace.strings), np.bool_)
        hits[[name for name in self._different if predicate(self._trace.strings[name])]] = True
        return hits

    def _candidate_places(self) -> Int64:
        """Which of `_rows` may wait, by name or, unknown ones, by length; the outermost where one is inside another.

        Vendors' runtimes wrap their synchronises in longer calls of unknown names: there the inner one tells.
        """
        slices, rows = self._trace.slices, self._rows
        known = self._named(_may_wait)
        others = np.flatnonzero(self._named(runtime_calls.may_drain) & ~known)
        long = others[slices.dur[rows[others]] >= _LONG_NS]
        known_rows = rows[known]
        wraps_known = among(rows[long], np.sort(slices.parent[known_rows]))
        at = np.sort(np.concatenate([np.flatnonzero(known), long[~wraps_known]]))
        inside_known = among(slices.parent[rows[at]], known_rows)
        found: Int64 = at[~inside_known & ~among(rows[at], np.sort(profiler_syncs(self._trace)))]
        return found

    def _synchronises_behind(self, at: Int64) -> Int64:
        """For each of these places in `_rows` the row of the synchronise that completes the copy there.

        NONE for other calls, and for a copy without one.
        """
        behind = np.full(len(at), NONE, np.int64)
        copies = np.flatnonzero(self._named_at(at, runtime_calls.is_copy))
        following = at[copies][:, None] + np.arange(1, 2 + _MOST_BETWEEN)
        does = (following < len(self._rows)) & ~self._named_at(following, runtime_calls.only_asks)
        after = following[np.arange(len(copies)), does.argmax(axis=1)] if len(copies) else copies
        pairs = np.flatnonzero(does.any(axis=1) & self._named_at(after, runtime_calls.is_synchronize))
        copy, synchronise = self._rows[at[copies[pairs]]], self._rows[after[pairs]]
        whole = self._completes(synchronise, copy)
        behind[copies[pairs[whole]]] = synchronise[whole]
        return behind

    def _completes(self, synchronise: Int64, copy: Int64) -> Bool:
        """Whether each two are one wait: in the same op, or close together in the same scope."""
        slices = self._trace.slices
        parent = slices.parent[copy]
        together = (slices.track[copy] == slices.track[synchronise]) & (parent == slices.parent[synchronise])
        in_op = (parent != NONE) & (slices.category[parent] == int(Category.CPU_OP))
        close = slices.ts[synchronise] - slices.end[copy] < _ADJACENT_NS
        on_device = np.array(["DtoD" in name for name in self._trace.copy_names(copy)], np.bool_)
        whole: Bool = together & ~on_device & (in_op | close)
        return whole

    def _apis(self, rows: Int64) -> list[str]:
        return [self._api_of[name] for name in self._trace.slices.name[rows].tolist()]

    def _around(self, rows: Int64) -> Int64:
        """The innermost host slice around each call: by time, or by `External id` where calls are on other tracks."""
        slices = self._trace.slices
        parent = slices.parent[rows].astype(np.int64)
        bare = np.flatnonzero(parent == NONE).tolist()
        for place in bare if bare and self._ops_by_id else ():
            row = rows.item(place)
            op = self._ops_by_id.get(slices.external.item(row), NONE)
            if op != NONE and slices.ts[op] <= slices.ts[row] and slices.end[row] <= slices.end[op]:
                parent[place] = op
        return parent

    @cached_property
    def _ops_by_id(self) -> dict[int, int]:
        """Rows of the ops by their `External id`; empty where calls lie on the threads of the ops, as they should.

        Early writers of traces (torch 1.8) gave the runtime calls of a thread a track of their own.
        """
        external = self._trace.slices.external
        ops, _ = self._trace.rows_of(Category.CPU_OP)
        if any((external.take(ops[some]) != NONE).any() for some in self._on_calling_threads(ops)):
            return {}
        ops = ops[external.take(ops) != NONE]
        return dict(zip(external[ops].tolist(), ops.tolist(), strict=True))

    def _on_calling_threads(self, rows: Int64) -> Iterator[slice]:
        """Where among these rows those stand that lie on tracks with runtime calls, a few thousand at a time."""
        for track in range(len(self._trace.tracks)):
            run = self._trace.track_rows(track)
            bounds = [run.start, run.stop]
            first, behind = np.searchsorted(self._rows, bounds).tolist()
            if first < behind:
                first, behind = np.searchsorted(rows, bounds).tolist()
                yield from blocks(behind - first, first)


def _may_wait(api: str) -> bool:
    """Whether a call of this name may wait however short it is."""
    by_name = runtime_calls.is_synchronize, runtime_calls.is_copy, runtime_calls.frees, runtime_calls.allocates
    return any(may(api) for may in by_name)


@lru_cache(1 << 10)
def _may_hold(copy: str, api: str) -> bool:
    """Whether a copy may hold the host: on the device, or with pinned memory, it doesn't."""
    pinned = "Pinned" in copy and runtime_calls.is_async_copy(api)
    return direction(copy) not in _ON_DEVICES and not pinned


def _blocks(apis: Sequence[str], copy: str, waited: bool) -> bool:
    """Whether a candidate can block the host: by definition, by its kind of memory, or because it was measured to.

    Args:
        apis: names of its runtime calls.
        copy: the name of its device copy, empty without.
        waited: whether the host was measurably blocked.
    """
    name = apis[0]
    if (
        len(apis) > 1
        or runtime_calls.is_synchronize(name)
        or runtime_calls.frees(name)
        or runtime_calls.allocates(name)
    ):
        return True
    if direction(copy) in _ON_DEVICES:
        return False
    if runtime_calls.is_blocking_copy(name):
        return True
    if runtime_calls.is_async_copy(name):
        return ("Pageable" in copy and direction(copy) == "DtoH") or (waited and "Pinned" not in copy)
    return waited
