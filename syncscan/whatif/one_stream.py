"""From a replay of one thread and one stream to steady states: only what a removal changes is replayed.

What comes later depends on one thing: how far the thread is ahead of the stream. A wait makes that what it was,
whatever was before, and so does a stream that has nothing left to do. So soon behind a removed wait all is as it was
with it, but for one time by which it is earlier; from there on to the next removed one nothing need be replayed.

A full launch queue would be another thing: where there may be one, nothing is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from syncscan.model.arrays import Float64
from syncscan.whatif.graph import LAUNCH_QUEUE, LEAD_IN
from syncscan.whatif.pace import BEGIN, SAME
from syncscan.whatif.segments import NO_WAIT, Around, Segments

CYCLES = 2
"""Within so many cycles most steps are steady; the others' stream is ahead by more each time, which takes long."""
MOST_CHANGED = 0.2
"""If a larger part of the segments is different, a replay from the begin costs less (measured on a detector's 752)."""


class ScaledSegments(msgspec.Struct, frozen=True, eq=False):
    """Segments with the scales of a replay applied, all times in ns; see `Segments`."""

    segments: Segments
    scale: float
    stretch: float
    host: Float64
    work: Float64
    late: Float64
    """How late the segment's launches alone make the stream end, behind the last of them; -inf without any."""
    own: Float64


def scaled(segments: Segments, scale: float, stretch: float) -> ScaledSegments:
    """The segments of a graph, the host's times multiplied by `scale` and the device's by `stretch`."""
    late, ends = np.full(len(segments.host), -np.inf), scale * segments.late_host + stretch * segments.late_device
    if len(ends):
        late[segments.launching] = np.maximum.reduceat(ends, segments.late_first)
    host, work, own = scale * segments.host, stretch * segments.work, scale * segments.own
    return ScaledSegments(segments, scale, stretch, host, work, late, own)


class Cycle(NamedTuple):
    """A steady cycle through the segments."""

    took: float
    waits: dict[int, float]
    """By finding, ns."""


class Replayed(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A steady cycle that was replayed from the begin, from which others are told."""

    removed: frozenset[int]
    whole: bool
    begin: float
    """When the thread begins."""
    nows: list[float]
    """When the thread goes on behind each segment's wait."""
    ends: list[float]
    """When the stream is done with what each segment adds."""
    cycle: Cycle

    @cached_property
    def times(self) -> tuple[Float64, Float64]:
        """Of both."""
        return np.array(self.nows), np.array(self.ends)


class _Walked(NamedTuple):
    """What of a cycle isn't as in another one, but later."""

    later: float
    """By how much a cycle takes longer."""
    places: list[int]
    """The segments that were replayed, in the order of a cycle that begins at the first of them."""
    nows: list[float]
    ends: list[float]
    waited: list[float]
    """How much longer each wait takes than it did."""
    even: bool
    """Whether at each wait the stream is done with all before; without its copy it may have been later before."""


class OneStream:
    """Some programs of a replay, which follow one another around and around.

    Args:
        segments: those of all programs.
        around: these ones'.
    """

    def __init__(self, segments: ScaledSegments, around: Around) -> None:
        self._scaled, self._around, self._length = segments, around, len(around.at)
        all_of_them = segments.host, segments.work, segments.late, segments.own
        self._host, self._work, self._late, self._own = (column[around.at].tolist() for column in all_of_them)
        self._as_it_is = self._replayed(frozenset(), False)
        self._last = self._as_it_is

    def cycle(self, removed: frozenset[int], whole: bool) -> Cycle | None:
        """The steady cycle without these findings; None where it isn't soon come to, or a launch queue may be full.

        Args:
            removed: numbers of findings that wait here.
            whole: whether the ops around them go too.
        """
        if self._as_it_is is None or self._last is None:
            return None
        for known in (self._as_it_is, self._last):
            places = self._differing(known, removed, whole)
            if places is None or len(places) > MOST_CHANGED * self._length:
                continue
            if found := self._from(known, places, removed, whole):
                return found
        replayed = self._replayed(removed, whole)
        self._last = replayed or self._last
        return replayed.cycle if replayed else None

    @cached_property
    def _left(self) -> tuple[list[float], list[float]]:
        """In place of `own` where a wait is removed; and where the op around it is, too."""
        s, at = self._scaled.segments, self._around.at
        plain, whole = (self._scaled.scale * column[at] for column in (s.own_removed, s.own_whole))
        return plain.tolist(), whole.tolist()

    @cached_property
    def _copy(self) -> list[float]:
        """What a removal saves of the stream's work."""
        copy: list[float] = (self._scaled.stretch * self._scaled.segments.copy[self._around.at]).tolist()
        return copy

    def _differing(self, known: Replayed, removed: frozenset[int], whole: bool) -> list[int] | None:
        """The segments that are different without these findings, ascending; None where it takes longer to tell."""
        if known.removed and known.whole != whole:
            return None
        waits = [place for finding in removed ^ known.removed for place in self._around.places[finding]]
        behind = [place + 1 for place in waits if self._copy[place]]
        return sorted({*waits, *behind} if behind else waits)

    def _replayed(self, removed: frozenset[int], whole: bool) -> Replayed | None:
        """The steady cycle, replayed from the begin."""
        around, work, own, wake = self._around, self._work, self._own, self._around.wake
        if removed:
            work, own, wake, left, copy = work.copy(), own.copy(), wake.copy(), self._left[whole], self._copy
            for place in chain.from_iterable(around.places[finding] for finding in removed):
                own[place], wake[place] = left[place], -math.inf
                if copy[place]:
                    work[place + 1] -= copy[place]
        findings = len(around.findings)
        columns = self._host, work, self._late, own, wake, around.number
        lead_in = self._length - min(around.last, LEAD_IN + 1)
        nows, ends, _ = _advance([column[lead_in:] for column in columns], BEGIN, 0.0, findings)
        for _ in range(CYCLES):
            begin, end = nows[-1], ends[-1]
            nows, ends, waits = _advance(columns, begin, end, findings)
            took = nows[-1] - begin
            if abs(ends[-1] - end - took) <= SAME * took:
                by_finding = dict(zip(around.findings, waits, strict=True))
                by_finding.pop(NO_WAIT)
                found = Replayed(removed, whole, begin, nows, ends, Cycle(took, by_finding))
                often = not removed and self._often(removed)
                return found if often or self._never_full(begin, found.times, took) else None
        return None

    def _from(self, known: Replayed, places: list[int], removed: frozenset[int], whole: bool) -> Cycle | None:
        """The steady cycle, which differs from a known one at these places; None where that is far from this one."""
        if not places:
            return known.cycle
        walked = self._walk(known, places, removed, whole)
        if walked is None:
            return None
        often = not known.removed and walked.even and self._often(removed)
        if not often and not self._never_full_behind(known, walked):
            return None
        waits, finding = known.cycle.waits.copy(), self._around.finding
        for place, longer in zip(walked.places, walked.waited, strict=True):
            if longer:
                waits[finding[place]] += longer
        return Cycle(known.cycle.took + walked.later, waits)

    def _walk(self, known: Replayed, places: list[int], removed: frozenset[int], whole: bool) -> _Walked | None:
        """Replay from each of these places on until all is later by one time; None where the first comes before that.

        The cycle begins at the first of them: what goes on at the end of the columns goes on at their begin.
        """
        length, took, wake, finding_at = self._length, known.cycle.took, self._around.wake, self._around.finding
        host, work, late, own, copy, left = self._host, self._work, self._late, self._own, self._copy, self._left[whole]
        nows, ends, gone_then, left_then = known.nows, known.ends, known.removed, self._left[known.whole]
        room, stop = SAME * took, places[0] + length
        walked = _Walked(0.0, [], [], [], [], True)
        due, later, even = 0, 0.0, True
        while due < len(places):
            at = places[due]
            before = nows[at - 1] if at else known.begin
            now, end, alike = before + later, (ends[at - 1] if at else ends[-1] - took) + later, False
            latest = emptied = end
            while not alike:
                if at == stop:
                    return None
                if due < len(places) and at == places[due]:
                    due += 1
                here, around = (at, 0.0) if at < length else (at - length, took)
                if not here:
                    before = known.begin
                finding = finding_at[here]
                now += host[here]
                end += work[here]
                if copy[here - 1] and finding_at[here - 1] in removed:
                    end -= copy[here - 1]
                alone = now + late[here]
                if alone > end:
                    end = alone
                if end > latest:
                    latest = end
                waited = 0.0
                if finding in removed:
                    now += left[here]
                    even = even and now >= emptied
                else:
                    now += own[here]
                    awake = end + wake[here]
                    if awake > now:
                        waited, now = awake - now, awake
                    if wake[here] >= 0.0:
                        even, latest, emptied = even and now >= latest, end, latest
                free = before + host[here] + (left_then[here] if finding in gone_then else own[here])
                waited_then, before = nows[here] - free, nows[here]
                walked.places.append(here)
                walked.nows.append(now)
                walked.ends.append(end)
                walked.waited.append(waited - waited_then)
                later = now - before - around
                alike = abs(end - ends[here] - around - later) <= room
                at += 1
            even = even and end >= latest
        return walked._replace(later=later, even=even)

    def _often(self, removed: frozenset[int]) -> bool:
        """Whether the thread waits for the stream so often that no launch queue can be full."""
        number, launches, places = self._around.waits, self._around.since, self._around.places
        gone = sorted(number[place] for finding in removed for place in places[finding] if place in number)
        if len(gone) == len(launches) or self._around.longest > LAUNCH_QUEUE:
            return False
        last, together = NO_WAIT, 0
        for n in (*gone, *(n + len(launches) for n in gone)):  # twice around: behind the last one comes the first
            together = launches[n % len(launches)] + (together if n == last + 1 else 0)
            if together + launches[(n + 1) % len(launches)] > LAUNCH_QUEUE:
                return False
            last = n
        return True

    def _never_full(self, begin: float, times: Sequence[Float64], took: float) -> bool:
        """Whether no launch queue is full in a cycle, of which this is when the thread and the stream come where."""
        (nows, ends), (launching, of, ago) = times, self._around.queued
        # Without its copy a stream may end sooner than with what was launched before that.
        latest = np.maximum.accumulate(np.append(ends - took, ends))[self._length :]
        before = np.append(begin, nows[:-1])[launching]
        return bool((before >= latest[of] - ago * took).all())

    def _never_full_behind(self, known: Replayed, walked: _Walked) -> bool:
        """The same of a cycle that was walked: in the known one's order, of which the first part was walked last."""
        length, first, took = self._length, walked.places[0], known.cycle.took + walked.later
        places = np.array(walked.places)
        which = np.searchsorted((places - first) % length, np.arange(length), side="right") - 1
        """Of each segment from the first one on, the last one that was walked before it or is it."""
        again = np.where(places < first, known.cycle.took, 0.0)
        frames: list[Float64] = []
        for times, mine in zip(known.times, (walked.nows, walked.ends), strict=True):
            later = (np.array(mine) - times[places] - again)[which]
            frames.append(times + np.append(later[length - first :] - walked.later, later[: length - first]))
        return self._never_full(frames[0].item(-1) - took, frames, took)


def _advance(
    columns: Sequence[Sequence[float]], now: float, end: float, findings: int
) -> tuple[list[float], list[float], list[float]]:
    """When the thread goes on behind each segment's wait, when the stream is done with what it adds; waits by finding.

    Args:
        columns: as of `ScaledSegments` host, work, late, own and wake, and the number of each wait's finding.
        now, end: of the segment before.
        findings: how many there are.
    """
    nows, ends, waits = [], [], [0.0] * findings
    for host, work, late, own, wake, finding in zip(*columns, strict=True):
        now += host
        end += work
        alone = now + late
        if alone > end:
            end = alone
        now += own
        awake = end + wake
        if awake > now:
            waits[finding] += awake - now
            now = awake
        nows.append(now)
        ends.append(end)
    return nows, ends, waits
