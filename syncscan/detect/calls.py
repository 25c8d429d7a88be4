"""Find the blocking calls among a trace's runtime slices, each with its copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from operator import itemgetter

import numpy as np
from msgspec.structs import replace

from syncscan.detect.awaited import AwaitedWork, HeldCopies, place_of
from syncscan.detect.further_waits import bare_wait, blocking_launch, polls, unseen_waits
from syncscan.facts.device_work import DeviceWork
from syncscan.facts.profiler_work import profiler_syncs
from syncscan.model import runtime_calls
from syncscan.model.arrays import Bool, Int64, among, blocks, looked_up
from syncscan.model.finding import SyncPoint
from syncscan.model.runtime_calls import api_name
from syncscan.model.trace import CALLS, NONE, Category, Trace

_LONG_NS = 100_000
"""Length from which a call of unknown name is examined: with nothing queued, 95 % of 459 calls took up to 35 µs.

All figures in this file: H200, torch 2.11, sample_traces, printed by benchmarks/detect_thresholds.py.
"""
_ADJACENT_NS = 20_000
"""Without an op around them, a copy and a synchronize this close are torch's own pair: at most 0.6 µs apart in 3 pairs,
3.9 µs in 954 pairs inside of ops; a program needs longer to call the second one from Python."""
_MOST_BETWEEN = 2
"""Queries that other versions may make between the two; torch 2.11 made none in 957 pairs."""

_ON_DEVICES = ("DtoD", "PtoP")
"""Directions of copies that no host waits for."""


def blocking_calls(trace: Trace, work: DeviceWork) -> list[SyncPoint]:
    """Return a trace's calls that can wait for the device, ordered by thread and time, without the profiler's own.

    A copy and the synchronize after it in the same op are one call, and so is a call inside another, and a loop that
    queries until the device is done. Launches don't count, unless every launch waits for its kernel
    (`CUDA_LAUNCH_BLOCKING`): then the longest represents them all.
    """
    awaited = AwaitedWork(trace, work)
    runtime = _RuntimeCalls(trace, awaited)
    blocks = cache(_blocks)
    named = [call for call in runtime.candidates() if blocks(call.apis, call.copy, call.waited)]
    further = [*unseen_waits(trace, awaited, named), *polls(trace, awaited)]
    longest = blocking_launch(trace)
    if longest is not None:
        further.append(runtime.of_launches(*longest))
    return sorted([*named, *further], key=lambda call: (call.track, call.ts)) if further else named


class _RuntimeCalls:
    """The runtime and driver calls of a trace, ordered by thread and time, with what is around and after each."""

    def __init__(self, trace: Trace, awaited: AwaitedWork) -> None:
        self._trace, self._awaited, self._held = trace, awaited, HeldCopies(trace, awaited)
        self._rows = np.flatnonzero(trace.is_category(*CALLS))
        self._names = trace.slices.name.take(self._rows)
        self._different = sorted({*trace.names_of(Category.RUNTIME), *trace.names_of(Category.DRIVER)})
        self._api_of = {name: api_name(trace.strings[name]) for name in self._different}

    def candidates(self) -> Iterator[SyncPoint]:
        """Yield calls that may wait by name or length, a copy with the synchronize after it as one."""
        at = self._candidate_places()
        behind = self._synchronizes_behind(at)
        free = ~among(self._rows[at], behind)  # the others belong to the copy before them
        at, behind = at[free], behind[free]
        rows = self._rows[at]
        copies = self._trace.copy_names(rows)
        hold = np.fromiter(map(_may_hold, copies, self._apis(rows)), np.bool_, len(rows))
        alone = ~self._named_at(at, runtime_calls.is_copy)
        chosen = np.flatnonzero((behind != NONE) | alone | hold)
        return self._calls(rows[chosen], behind[chosen], [copies[place] for place in chosen.tolist()])

    def _calls(self, rows: Int64, behind: Int64, copies: Sequence[str]) -> Iterator[SyncPoint]:
        """Return the calls in these rows, given the synchronize after each (or NONE) and its copy's name."""
        slices = self._trace.slices
        last = np.where(behind == NONE, rows, behind)
        begin, end, around = slices.ts[rows], slices.end[last], self._around(rows)
        first_apis, last_apis = self._apis(rows), self._apis(last)
        threads, first_is_longer = slices.track[rows].tolist(), (slices.dur[rows] >= slices.dur[last]).tolist()
        supposed = self._awaited.places(rows, last)
        pairs = list(zip(rows.tolist(), behind.tolist(), first_apis, last_apis, strict=True))
        awaited = self._awaited.of(rows, last, last_apis, threads, supposed)
        places = list(map(place_of, awaited, last_apis, supposed))
        held = self._held.until(rows, copies)
        for at in np.flatnonzero(held).tolist():
            known = awaited[at]
            awaited[at] = known and replace(known, copy_held=held.item(at))
        waited = self._awaited.waited(begin, end, places, first_apis, held)
        return map(
            SyncPoint,
            [(row,) if after == NONE else (row, after) for row, after, _, _ in pairs],
            [one if longer else other for (_, _, one, other), longer in zip(pairs, first_is_longer, strict=True)],
            [(one,) if after == NONE else (one, other) for _, after, one, other in pairs],
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
        copies = self._trace.copies_of(rows)
        return np.where(copies == NONE, NONE, self._trace.slices.bytes[copies])

    def of_launches(self, row: int, launches: int) -> SyncPoint:
        """Return the launch that represents all if every launch waits for its kernel."""
        rows, track = np.array([row]), int(self._trace.slices.track[row])
        (api,) = self._apis(rows)
        (place,) = places = self._awaited.last_launches(rows)
        (awaited,) = self._awaited.of(rows, rows, [api], [track], places)
        return bare_wait(self._trace, [row], api, track, self._around(rows).item(), place, awaited, launches)

    def _named(self, predicate: Callable[[str], bool]) -> Bool:
        """Return which of `_rows` have a name that satisfies `predicate`, called once per name."""
        mask: Bool = looked_up(self._names_that(predicate), self._names)
        return mask

    def _named_at(self, places: Int64, predicate: Callable[[str], bool]) -> Bool:
        """Return which of `_rows` at these places have such a name; places after the last row are taken for it."""
        mask: Bool = self._names_that(predicate)[self._names.take(places, mode="clip")]
        return mask

    def _names_that(self, predicate: Callable[[str], bool]) -> Bool:
        """Return a mask over the trace's strings of the names of runtime calls that satisfy `predicate`."""
        hits = np.zeros(len(self._trace.strings), np.bool_)
        hits[[name for name in self._different if predicate(self._trace.strings[name])]] = True
        return hits

    def _candidate_places(self) -> Int64:
        """Return which of `_rows` may wait, by name or, for unknown names, by length; the outermost of nested ones.

        Vendors' runtimes wrap their synchronizes in longer calls of unknown names; then the inner one counts.
        """
        slices, rows = self._trace.slices, self._rows
        may_wait = self._named(_may_wait)
        unknown = np.flatnonzero(self._named(runtime_calls.may_drain) & ~may_wait)
        long = unknown[slices.dur[rows[unknown]] >= _LONG_NS]
        known_rows = rows[may_wait]
        wraps_known = among(rows[long], slices.parent[known_rows])
        at = np.sort(np.concatenate([np.flatnonzero(may_wait), long[~wraps_known]]))
        inside_known = among(slices.parent[rows[at]], known_rows)
        chosen: Int64 = at[~inside_known & ~among(rows[at], profiler_syncs(self._trace))]
        return chosen

    def _synchronizes_behind(self, at: Int64) -> Int64:
        """Return for each of these places in `_rows` the row of the synchronize that completes the copy there.

        NONE for other calls, and for a copy without one.
        """
        behind = np.full(len(at), NONE, np.int64)
        copies = np.flatnonzero(self._named_at(at, runtime_calls.is_copy))
        following = at[copies][:, None] + np.arange(1, 2 + _MOST_BETWEEN)
        does = (following < len(self._rows)) & ~self._named_at(following, runtime_calls.only_asks)
        after = following[np.arange(len(copies)), does.argmax(axis=1)] if len(copies) else copies
        pairs = np.flatnonzero(does.any(axis=1) & self._named_at(after, runtime_calls.is_synchronize))
        copy, synchronize = self._rows[at[copies[pairs]]], self._rows[after[pairs]]
        whole = self._completes(synchronize, copy)
        behind[copies[pairs[whole]]] = synchronize[whole]
        return behind

    def _completes(self, synchronize: Int64, copy: Int64) -> Bool:
        """Return whether each pair is one wait: in the same op, or close together in the same scope."""
        slices = self._trace.slices
        parent = slices.parent[copy]
        together = (slices.track[copy] == slices.track[synchronize]) & (parent == slices.parent[synchronize])
        in_op = (parent != NONE) & (slices.category[parent] == int(Category.CPU_OP))
        close = slices.ts[synchronize] - slices.end[copy] < _ADJACENT_NS
        on_device = np.array(["DtoD" in name for name in self._trace.copy_names(copy)], np.bool_)
        whole: Bool = together & ~on_device & (in_op | close)
        return whole

    def _apis(self, rows: Int64) -> list[str]:
        return [self._api_of[name] for name in self._trace.slices.name[rows].tolist()]

    def _around(self, rows: Int64) -> Int64:
        """Return the innermost host slice around each call: by time, or by `External id` for calls on other tracks."""
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
        """Rows of the ops by `External id`; empty if calls are on the threads of the ops, as they should be.

        Early versions (torch 1.8) put the runtime calls of a thread on a track of their own.
        """
        external = self._trace.slices.external
        ops, _ = self._trace.rows_of(Category.CPU_OP)
        if any((external.take(ops[some]) != NONE).any() for some in self._on_calling_threads(ops)):
            return {}
        ops = ops[external.take(ops) != NONE]
        return dict(zip(external[ops].tolist(), ops.tolist(), strict=True))

    def _on_calling_threads(self, rows: Int64) -> Iterator[slice]:
        """Yield parts of these rows on tracks with runtime calls, a few thousand at a time."""
        for track in range(len(self._trace.tracks)):
            run = self._trace.track_rows(track)
            bounds = [run.start, run.stop]
            first, behind = np.searchsorted(self._rows, bounds).tolist()
            if first < behind:
                first, behind = np.searchsorted(rows, bounds).tolist()
                yield from blocks(behind - first, first)


def _may_wait(api: str) -> bool:
    """Return whether a call of this name may wait, however short it is."""
    by_name = runtime_calls.is_synchronize, runtime_calls.is_copy, runtime_calls.frees, runtime_calls.allocates
    return any(may(api) for may in by_name)


@lru_cache(1 << 10)
def _may_hold(copy: str, api: str) -> bool:
    """Return whether a copy may block the host; within the device, or with pinned memory, it doesn't."""
    pinned = "Pinned" in copy and runtime_calls.is_async_copy(api)
    return runtime_calls.copy_direction(copy) not in _ON_DEVICES and not pinned


def _blocks(apis: Sequence[str], copy: str, waited: bool) -> bool:
    """Return whether a candidate can block the host: by definition, by its kind of memory, or by measurement.

    `copy` is the name of its device copy, empty without one; it `waited` if the host was measurably blocked.
    """
    name = apis[0]
    if (
        len(apis) > 1
        or runtime_calls.is_synchronize(name)
        or runtime_calls.frees(name)
        or runtime_calls.allocates(name)
    ):
        return True
    direction = runtime_calls.copy_direction(copy)
    if direction in _ON_DEVICES:
        return False
    if runtime_calls.is_blocking_copy(name):
        return True
    if runtime_calls.is_async_copy(name):
        return ("Pageable" in copy and direction == "DtoH") or (waited and "Pinned" not in copy)
    return waited
