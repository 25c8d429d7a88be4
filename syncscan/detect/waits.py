"""Find the device and stream that a runtime call waits for, and whether it measurably blocked the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from syncscan.facts.clock_tolerance import HOST_NS
from syncscan.facts.device_work import DeviceWork
from syncscan.model.arrays import Bool, Int64
from syncscan.model.finding import Place
from syncscan.model.runtime_calls import is_of_a_stream, waits_by_nature
from syncscan.model.trace import NONE, Trace

SHORTEST_NS = 20_000
"""Shorter waits look like the call itself: with nothing queued, 90 % of 459 calls took up to 19.5 µs.

All figures in this file: H200, torch 2.11, sample_traces, printed by benchmarks/detect_thresholds.py.
"""
PROMPT_NS = 100_000
"""Time after its work within which a call that waited returns: 95 % of 313 waits within 29 µs. Of 50 calls of the
allocator, one in ten takes longer than this without waiting."""


class Waits:
    """Finds what the calls of one trace wait for."""

    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self._trace, self._work = trace, work

    def places(self, first: Int64, last: Int64) -> list[Place]:
        """Return device and stream that calls wait for; stream NONE for the whole device, device NONE if none worked.

        The copy states it, or the profiler's synchronization row; else it is assumed to be where the thread launched
        last, as for a stream that the row leaves open (since CUDA 12.9).

        Args:
            first, last: first and last runtime slice of each call.
        """
        slices = self._trace.slices
        of_a_stream = self._trace.called(last, is_of_a_stream)
        on, of = self._launched_last(first)
        device, stream = on, np.where(of_a_stream, of, NONE)
        for rows in (self._trace.sync_rows_of(last), self._trace.copies_of(first)):  # what comes last counts
            told_on, told_of = slices.device[rows], slices.stream[rows]
            stated = (rows != NONE) & (told_on != NONE)
            open_ = np.where((told_of == NONE) & of_a_stream, np.where(on == told_on, of, NONE), told_of)
            device, stream = np.where(stated, told_on, device), np.where(stated, open_, stream)
        return list(zip(device.tolist(), stream.tolist(), strict=True))

    def last_launches(self, rows: Int64) -> list[Place]:
        """Return device and stream of the last launch before each call on its thread; the first device without one."""
        device, stream = self._launched_last(rows)
        return list(zip(device.tolist(), stream.tolist(), strict=True))

    def _launched_last(self, rows: Int64) -> tuple[Int64, Int64]:
        slices = self._trace.slices
        calls, work = self._launches
        at = np.searchsorted(calls, rows, side="right") - 1
        if not len(calls):
            return np.full(len(rows), self.first_device), np.full(len(rows), NONE)
        known = (at >= 0) & (slices.track[calls[at]] == slices.track[rows])
        device = np.where(known, slices.device[work[at]], self.first_device)
        return device, np.where(known, slices.stream[work[at]], NONE)

    @property
    def first_device(self) -> int:
        """Number of the first device that did work; NONE without any."""
        return next(iter(self._work.devices), NONE)

    def waited(
        self, begin: Int64, end: Int64, places: Sequence[Place], apis: Sequence[str], held: Int64 | None = None
    ) -> Bool:
        """Return whether each call blocked the host for most of its time, until previously queued work had ended.

        Calls that may be long with nothing queued count only if they returned promptly after the work.

        Args:
            begin, end: begin and end of each call, ns.
            places: device and stream that it waits for; see `places`.
            apis: name of its first runtime call.
            held: end of the work of other streams that blocked its copy; 0 if none did.
        """
        done, queued = self._work.last_ends(places, begin)
        if held is not None:
            done, queued = np.maximum(done, held), queued | (held > begin)
        by_nature = {api: waits_by_nature(api) for api in set(apis)}
        prompt = (end - done <= PROMPT_NS) | np.array([by_nature[api] for api in apis], np.bool_)
        long = (done - begin > SHORTEST_NS) & (end >= done - HOST_NS)
        waited: Bool = queued & long & prompt & (2 * (np.minimum(done, end) - begin) >= end - begin)
        return waited

    @cached_property
    def _launches(self) -> tuple[Int64, Int64]:
        """Rows of calls that launched device work, ascending, and the row of each one's work."""
        work, calls = self._trace.device_rows, self._trace.device_calls
        launched = np.flatnonzero(calls != NONE)
        in_order = launched[np.argsort(calls[launched], kind="stable")]
        return calls[in_order], work[in_order]
