"""From a graph of one thread and one stream to columns of what lies between its waits: a segment, then a wait.

All that a thread does before a wait is arithmetic in (max, +): so the runs of a segment are one run, too, whose
launches alone make the stream end so late.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from syncscan.model.arrays import Float64, Int64
from syncscan.model.trace import NONE
from syncscan.whatif.graph import LAUNCH_QUEUE, Graph, HostWait, Program, Run

NO_WAIT = NONE - 1
"""The finding of a segment behind which nothing waits: the last of a program, and where one is cut."""
MOST_LAUNCHES = 256
"""A segment with more is cut: a thread that comes to it is held at most until its launches fill the launch queue."""


class Segments(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Those of a graph's programs one behind the other, times in ns; the last of each program ends without a wait."""

    bounds: tuple[int, ...]
    """Where each program's segments begin, and where the last one's end."""
    host: Float64
    """The thread's work from the wait before to the last launch: that of the runs, and what the calls before it take
    behind their wait."""
    work: Float64
    """What it adds to the stream."""
    late_host: Float64
    """Of each launch, as of a program: how long before the segment's last one it returned, negative."""
    late_device: Float64
    late_first: Int64
    """Where the launches of each segment begin that has any."""
    launching: Int64
    """Which segments have any."""
    launches: Int64
    """How many."""
    own: Float64
    """The thread's work from the last launch to the wait, and what the call takes that waits for nothing."""
    wake: Float64
    """How long after the stream the thread goes on; -inf where it doesn't wait for the stream."""
    own_removed: Float64
    """What is there in place of `own` and of what the call takes behind its wait, where the wait is removed."""
    own_whole: Float64
    """The same where the op around it goes, too."""
    copy: Float64
    """What a removal saves of the stream's work."""
    finding: Int64
    """That of the wait; NONE for what can't be removed."""

    def around(self, programs: Sequence[int] | None) -> Around:
        """Those of some programs that follow one another around and around; of all of them by default."""
        key = None if programs is None else tuple(programs)
        if key not in self._arounds:
            self._arounds[key] = _around(self, range(len(self.bounds) - 1) if programs is None else programs)
        return self._arounds[key]

    @cached_property
    def _arounds(self) -> dict[tuple[int, ...] | None, Around]:
        return {}


class Around(msgspec.Struct, frozen=True, eq=False, dict=True):
    """What no scale changes of segments that follow one another around and around."""

    at: Int64
    """Their places among those of the graph."""
    last: int
    """How many of them the last program has."""
    findings: list[int]
    number: list[int]
    """Of each segment that of its finding among them."""
    finding: list[int]
    wake: list[float]
    launches: Int64

    @cached_property
    def places(self) -> dict[int, list[int]]:
        """Where each finding waits."""
        places: dict[int, list[int]] = {finding: [] for finding in self.findings}
        for place, finding in enumerate(self.finding):
            places[finding].append(place)
        return places

    @cached_property
    def waits(self) -> dict[int, int]:
        """Where the thread waits for the stream, and which of those places it is."""
        return {place: number for number, place in enumerate(p for p, wake in enumerate(self.wake) if wake > -np.inf)}

    @cached_property
    def since(self) -> list[int]:
        """Launches from each of these waits' last one to it."""
        sums = np.cumsum(self.launches)
        reached = sums[np.array(list(self.waits), np.int64)]
        since: list[int] = np.diff(reached, prepend=reached[-1:] - sums[-1]).tolist()
        return since

    @cached_property
    def longest(self) -> int:
        """The most of these."""
        return max(self.since, default=0)

    @cached_property
    def queued(self) -> tuple[Int64, Int64, Int64]:
        """Segments with launches; of each the one that a full launch queue makes it wait for, and how many cycles ago.

        So long as that has ended when the thread comes to the segment, the queue isn't full there.
        """
        launching = np.flatnonzero(self.launches)
        if not len(launching):
            return launching, launching, launching
        mine = self.launches[launching]
        behind = np.cumsum(mine)
        number = behind - LAUNCH_QUEUE  # of the launch that must have ended, counted from 1 on
        ago = np.maximum(0, -((number - 1) // behind[-1]))
        return launching, launching[np.searchsorted(behind - mine, number + ago * behind[-1]) - 1], ago


def _around(segments: Segments, programs: Sequence[int]) -> Around:
    bounds = segments.bounds
    at = np.concatenate([np.arange(bounds[k], bounds[k + 1]) for k in programs])
    findings, number = np.unique(segments.finding[at], return_inverse=True)
    return Around(
        at=at,
        last=bounds[programs[-1] + 1] - bounds[programs[-1]],
        findings=findings.tolist(),
        number=number.tolist(),
        finding=segments.finding[at].tolist(),
        wake=segments.wake[at].tolist(),
        launches=segments.launches[at],
    )


def segments_of(graph: Graph) -> Segments | None:
    """The segments of a graph; None where it has several threads or streams, or events, or collectives apart."""
    if graph.threads > 1 or len(graph.streams) > 1 or graph.events or not graph.programs:
        return None
    parts = [_of_program(program) for program in graph.programs]
    if any(part is None for part in parts):
        return None
    return _joined([part for part in parts if part is not None])


def _of_program(program: Program) -> Segments | None:
    """Those of one program; None where it has other nodes than runs and waits."""
    runs = [node for node in program.nodes if isinstance(node, Run)]
    feeds = [feed for run in runs for feed in run.feeds]
    if len(runs) + len(program.host_waits) < len(program.nodes) or [f.row for f in feeds] != list(range(len(feeds))):
        return None
    numbers, waits = _numbered(program)
    is_run = np.array([isinstance(node, Run) for node in program.nodes], np.bool_)
    of_run, count, host = numbers[is_run], len(waits), program.node_host[is_run]
    fed, work = np.array([bool(run.feeds) for run in runs], np.bool_), np.array([feed.work_ns for feed in feeds])
    of_feed, lengths = of_run[fed], np.diff(program.late_first, append=len(program.late_host))
    launching, first = np.unique(of_feed, return_index=True)
    before, call, wake, after, left, read, op, copy = np.array([_times(wait) for wait in waits]).T
    stays = before + left - after
    return Segments(
        bounds=(0, count),
        host=np.bincount(of_run, host, count) + np.append(0.0, after[:-1]),
        work=np.bincount(of_feed, work, count).astype(np.float64),
        late_host=program.late_host - np.repeat(_behind(host, of_run, count)[fed], lengths),
        late_device=program.late_device + np.repeat(_behind(work, of_feed, count), lengths),
        late_first=program.late_first[first],
        launching=launching,
        launches=np.bincount(of_run, [run.launches for run in runs], count).astype(np.int64),
        own=before + call,
        wake=wake,
        own_removed=stays - read,
        own_whole=stays - np.maximum(read, op),
        copy=copy,
        finding=np.array([wait.wait.finding if wait else NO_WAIT for wait in waits], np.int64),
    )


def _numbered(program: Program) -> tuple[Int64, list[HostWait | None]]:
    """Of each node the number of its segment, and of each segment the wait behind it."""
    numbers, waits = [], list[HostWait | None]()
    launches = 0
    for node in program.nodes:
        if isinstance(node, Run):
            if launches and launches + node.launches > MOST_LAUNCHES:
                waits.append(None)
                launches = 0
            launches += node.launches
        numbers.append(len(waits))
        if isinstance(node, HostWait):
            waits.append(node)
            launches = 0
    return np.array(numbers, np.int64), [*waits, None]


def _times(node: HostWait | None) -> tuple[float, ...]:
    """The host's time before a wait, and what it takes: call, wake, after, left, read, op, and its copy."""
    if node is None:
        return 0.0, 0.0, -np.inf, 0.0, 0.0, 0.0, 0.0, 0.0
    wait, waits = node.wait, bool(node.streams)
    wake, copy = wait.wake_ns if waits else -np.inf, wait.copy_ns if wait.copy != NONE else 0.0
    return node.host_ns, wait.call_ns, wake, wait.after_ns, wait.left_ns, wait.read_ns, wait.op_ns, copy


def _behind(numbers: Float64, segment: Int64, count: int) -> Float64:
    """For each of these, which are in order of their segments: the sum of those behind it in its segment."""
    sums = np.cumsum(numbers)
    ends = np.cumsum(np.bincount(segment, minlength=count))
    return np.append(0.0, sums)[ends[segment]] - sums


_OF_PLACES = ("bounds", "late_first", "launching")
"""The columns that count segments, or launches, from their program's first one."""


def _joined(parts: Sequence[Segments]) -> Segments:
    """Those of several programs, one behind the other."""
    bounds = np.cumsum([0, *(len(part.host) for part in parts)]).tolist()
    launches = np.cumsum([0, *(len(part.late_host) for part in parts)]).tolist()

    def column(name: str, added: Sequence[int] | None = None) -> Any:
        columns = [getattr(part, name) for part in parts]
        return np.concatenate([c + more for c, more in zip(columns, added, strict=False)] if added else columns)

    return Segments(
        bounds=tuple(bounds),
        late_first=column("late_first", launches),
        launching=column("launching", bounds),
        **{name: column(name) for name in Segments.__struct_fields__ if name not in _OF_PLACES},
    )
