"""Keep what of the simulated device's work is ordered before what, and record the accesses that nothing orders.

Each stream numbers its work. A vector clock per stream, and one for the host, holds up to which number of each other
stream all work is done before what comes next: a launch takes over what the host has waited for, `wait_event` and
`wait_stream` what the other stream had when it was recorded, a synchronize hands it to the host. Two accesses of one
memory, one of them a write, race where the later one's clock doesn't reach the earlier one's number.

Threads of the host count as one, though each has its own current stream, and a backward pass as ordered after all that
was launched before it, and before what its caller's stream does next: autograd works on the streams of the forward pass
and synchronizes them itself, but not what a hook launches on another stream. So what is reported is a race on any
machine; not each race is reported.

Source: the semantics of streams in the CUDA C++ Programming Guide ("Asynchronous Concurrent Execution"), of the
caching allocator and `record_stream` in torch's notes on CUDA semantics.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from syncscan.dryrun.protecting_waits import MOST_RACES, ProtectingWaits
from syncscan.dryrun.recording import Frame
from syncscan.dryrun.tensor_memory import (
    EVERYTHING,
    MOST_ACCESSES,
    WITHOUT_STORAGE,
    Access,
    CapturedUse,
    Clock,
    Region,
    Uses,
    meet,
    region_of,
    region_of_array,
    within,
)
from syncscan.model.race import RaceKind

DEFAULT = 0
"""The number of the default stream."""
_USES = "_syncscan_uses"


class _Current(threading.local):
    """The current stream, which is a thread's own."""

    stream = DEFAULT


@dataclass(slots=True)
class BackwardPass:
    """A backward pass that autograd runs."""

    task: int
    """Its number."""
    caller: int
    """The stream that was current where it was called."""
    stream: int
    """The stream of its last op."""
    done: Clock
    """The work that its next op comes after."""


class WorkOrder:
    """The order of a run's work on the simulated device; `place` returns the program's line that runs now."""

    def __init__(self, place: Callable[[], Frame | None]) -> None:
        self._place = place
        self.races: dict[tuple[RaceKind, Frame], tuple[Frame | None, int]] = {}
        """Kind and line of the later of two accesses that nothing orders → the earlier one's line, and how often."""
        self._current = _Current()
        self._backward = BackwardPass(-1, DEFAULT, DEFAULT, {})
        self.several = False
        """Whether the program made a stream of its own: then lines, regions and reads are noted."""
        self.open_copies = False
        """Whether a copy between host and device may still run, or is done and its memory not used since."""
        self.protecting = ProtectingWaits(place)
        self._numbers: list[int] = [0]
        self._clocks: list[Clock] = [{}]
        self._host: Clock = {}
        self._host_version = 0
        self._versions: list[int] = [0]
        self._handed_back: list[tuple[int | None, Sequence[Access]]] = []
        self._captured: list[CapturedUse] | None = None

    @property
    def current(self) -> int:
        return self._current.stream

    @current.setter
    def current(self, stream: int) -> None:
        self._current.stream = stream

    @property
    def notes_reads(self) -> bool:
        """Whether reads of the device can matter: there are several streams, or a graph may be replayed on another."""
        return self.several or self._captured is not None

    # streams and events

    def new_stream(self) -> int:
        self.several = True
        self._numbers.append(0)
        self._clocks.append(dict(self._host))
        self._versions.append(self._host_version)
        return len(self._numbers) - 1

    def mark(self, stream: int | None = None) -> Clock:
        """Return what is done once a stream has come so far, as an event records it; of the current one by default."""
        stream = self.current if stream is None else stream
        return {**self._clock(stream), stream: self._numbers[stream]}

    def stream_waits(self, mark: Clock, stream: int | None = None) -> None:
        """Order what comes next on a stream after a mark."""
        waiting = self.current if stream is None else stream
        self.protecting.stream_waits(waiting, mark)
        _join(self._clock(waiting), mark)

    def host_waits(self, *marks: Clock) -> None:
        """Order what the host does and launches next after marks."""
        before = dict(self._host) if self.several else self._host
        for mark in marks:
            _join(self._host, mark)
        self._host_version += 1
        if self.several:
            self.protecting.host_waited(before, self._host)
        self.protecting.copies_done(self._host)
        running = any(self._host.get(stream, 0) < number for stream, number in enumerate(self._numbers))
        self.open_copies = self.open_copies and (running or self.protecting.awaited_copies)

    def host_waits_for_device(self) -> None:
        self.host_waits(*map(self.mark, range(len(self._numbers))))

    # accesses

    def device_work(self, reads: Iterable[Any] = (), writes: Iterable[Any] = (), allocated: Iterable[Any] = ()) -> None:
        """Note an op of the current stream, which fills what it allocated."""
        launch = self._launch()
        if self._handed_back:
            self._reuse()
        for tensor in reads if self.notes_reads else ():
            self._read(tensor, launch)
        for tensor in writes:
            self._write(tensor, launch)
        for tensor in allocated:
            self._fill(tensor, launch)

    def backward_work(
        self, reads: Iterable[Any], writes: Iterable[Any], allocated: Iterable[Any], task: int, stream: int | None
    ) -> None:
        """Note an op of a backward pass, which autograd orders after its other ops and all that was launched before it.

        A hook may launch work of its own on another stream: that is ordered as any work is. `task` is the number of the
        backward pass; `stream` the one that its forward op ran on: None where it isn't known, and that of the op before
        is taken.
        """
        caller = self.current
        if task != self._backward.task:
            self._backward = BackwardPass(task, caller, self._backward.stream, dict(enumerate(self._numbers)))
        backward = self._backward
        if caller != backward.caller:
            self.device_work(reads, writes, allocated)
            return
        backward.stream = self.current = stream if stream is not None else backward.stream
        self.stream_waits(backward.done)
        self.stream_waits(self.mark(caller))
        try:
            self.device_work(reads, writes, allocated)
        finally:
            self.current = caller
        backward.done[backward.stream] = self._numbers[backward.stream]
        self.stream_waits(backward.done)

    def copy_out(self, source: Any, target: Any) -> None:
        """Note an asynchronous copy of a tensor of the device to one in pinned host memory."""
        launch = self._launch(exact=True)
        if self.notes_reads:
            self._read(source, launch)
        self._write(target, launch, on_host=True)
        self._note_copy(launch)

    def copy_in(self, source: Any) -> None:
        """Note that an asynchronous copy reads a tensor in pinned host memory."""
        launch = self._launch(exact=True)
        self._read(source, launch, on_host=True)
        self._note_copy(launch)

    def host_reads(self, tensor: Any) -> None:
        """Note that the host reads a tensor: copies to it have to be done."""
        for access in self._unfinished(tensor, reads=False):
            self._race(RaceKind.READ_BEFORE_COPY, access)
        self._note_use(tensor, reads=True)

    def host_writes(self, tensor: Any) -> None:
        """Note that the host writes to a tensor: copies to it and from it have to be done."""
        for access in self._unfinished(tensor, reads=True):
            self._race(RaceKind.WRITE_BEFORE_COPY, access)
        self._note_use(tensor, reads=False)

    def array_used(self, tensor: Any, array: Any, written: bool) -> None:
        """Note that the host reads an array of a host tensor's memory, or writes to it.

        An array outside of the tensor's memory is a copy, and isn't noted.
        """
        storage = tensor.untyped_storage()
        uses = getattr(storage, _USES, None)
        if not isinstance(uses, Uses) or not self.open_copies or not array.size:
            return
        region = region_of_array(array, storage.data_ptr())
        if region.begin < 0 or region.end > storage.nbytes():
            return
        for access in self._open(uses, region, reads=written):
            self._race(RaceKind.WRITE_BEFORE_COPY if written else RaceKind.READ_BEFORE_COPY, access)
        self.protecting.host_uses(uses, region, reads=not written)

    def record_stream(self, tensor: Any, stream: int) -> None:
        """Note that a stream uses a memory: the allocator hands it out once that is done."""
        if (uses := self._uses(tensor)) is not None:
            uses.recorded = (*uses.recorded, stream)

    # graphs

    def begin_capture(self) -> None:
        """Begin a capture: the work that follows runs in a replay, as one piece."""
        self._captured = []

    def end_capture(self) -> Sequence[CapturedUse]:
        captured, self._captured = self._captured or [], None
        return list(dict.fromkeys(captured))

    def replay(self, captured: Sequence[CapturedUse]) -> None:
        """Note a replay on the current stream: it reads and writes all of what was captured, copies of the host too."""
        copies = any(on_host for _, _, on_host in captured)
        launch = self._launch(exact=copies)
        for uses, written, _ in captured:
            self._note_write(uses, launch) if written else self._note_read(uses, launch)
        if copies:
            self._note_copy(launch)

    # the mechanism

    def _launch(self, *, exact: bool = False) -> Access:
        """Return an access of everything by the next work of the current stream."""
        stream = self.current
        self._numbers[stream] += 1
        return Access(stream, self._numbers[stream], EVERYTHING, self._place() if self.several or exact else None)

    def _uses(self, tensor: Any, *, written: bool = True, on_host: bool = False) -> Uses | None:
        """Return the uses of a tensor's memory, and note this one for replays; None where it has none of its own."""
        try:
            storage = tensor.untyped_storage()
        except WITHOUT_STORAGE:
            return None
        uses: Uses | Access | None = getattr(storage, _USES, None)
        if not isinstance(uses, Uses):
            home, writes = (self.current, []) if uses is None else (uses.stream, [uses])
            uses = Uses(self._freed, None if on_host else home, writes)
            setattr(storage, _USES, uses)
        if self._captured is not None:
            self._captured.append((uses, written, on_host))
        return uses

    def _read(self, tensor: Any, launch: Access, *, on_host: bool = False) -> None:
        uses = self._uses(tensor, written=False, on_host=on_host)
        if uses is not None and self._captured is None:
            self._note_read(uses, launch.of(tensor))

    def _note_read(self, uses: Uses, access: Access) -> None:
        stream, _, region, _ = access
        self._check(uses.writes, access)
        reads = uses.reads
        for at, earlier in enumerate(reads):
            if earlier.stream == stream and earlier.region == region:
                reads[at] = access
                break
        else:
            reads.append(access)
            del reads[:-MOST_ACCESSES]
        uses.used_on(stream)

    def _write(self, tensor: Any, launch: Access, *, on_host: bool = False) -> None:
        if not self.several and launch.place is None:
            self._fill(tensor, launch)
            return
        uses = self._uses(tensor, on_host=on_host)
        if uses is not None and self._captured is None:
            self._note_write(uses, launch.of(tensor))

    def _note_write(self, uses: Uses, access: Access) -> None:
        self._check(uses.writes, access)
        self._check(uses.reads, access)
        left = lambda earlier: not within(earlier.region, access.region)  # noqa: E731
        uses.writes = [*filter(left, uses.writes), access][-MOST_ACCESSES:]
        uses.reads = [*filter(left, uses.reads)]
        uses.used_on(access.stream)

    def _check(self, earlier_accesses: Iterable[Access], access: Access) -> None:
        """Note a race for each of the earlier accesses that nothing orders before this one."""
        stream = access.stream
        for earlier in earlier_accesses:
            ordered = earlier.stream == stream or earlier.is_done(self._clock(stream))
            if not ordered and meet(earlier.region, access.region):
                self._race(RaceKind.UNORDERED_STREAMS, earlier)
            elif earlier.stream != stream and meet(earlier.region, access.region):
                self.protecting.ordered(RaceKind.UNORDERED_STREAMS, earlier, stream)

    def _fill(self, tensor: Any, launch: Access) -> None:
        """Note a write to the whole memory that needs no check: it is new, or there is one stream.

        The access alone is kept where no other was: most memory is only used by the stream that filled it.
        """
        try:
            storage = tensor.untyped_storage()
        except WITHOUT_STORAGE:
            return
        if self._captured is None and not isinstance(getattr(storage, _USES, None), Uses):
            setattr(storage, _USES, launch)
        elif (uses := self._uses(tensor)) is not None:
            uses.writes = [launch]

    def _unfinished(self, tensor: Any, *, reads: bool) -> Sequence[Access]:
        """Return the copies that may still use a host tensor, those that only read it where `reads`."""
        uses = getattr(tensor.untyped_storage(), _USES, None)
        if not isinstance(uses, Uses):
            return ()
        return self._open(uses, region_of(tensor), reads=reads)

    def _open(self, uses: Uses, region: Region, *, reads: bool) -> Sequence[Access]:
        accesses = (*uses.writes, *uses.reads) if reads else uses.writes
        return [a for a in accesses if not a.is_done(self._host) and meet(a.region, region)]

    def _note_copy(self, copy: Access) -> None:
        self.protecting.copied(copy)
        self.open_copies = True

    def _note_use(self, tensor: Any, *, reads: bool) -> None:
        uses = getattr(tensor.untyped_storage(), _USES, None) if self.protecting.awaited_copies else None
        if isinstance(uses, Uses):
            self.protecting.host_uses(uses, region_of(tensor), reads=reads)

    def _freed(self, uses: Uses) -> None:
        """Remember the work of other streams that may still use a memory whose last reference is gone."""
        safe = (uses.home, *uses.recorded)
        pending = [access for access in (*uses.writes, *uses.reads) if access.stream not in safe]
        if pending:
            self._handed_back.append((uses.home, pending))

    def _reuse(self) -> None:
        """Memory is allocated on the current stream: what was freed there may be handed out again."""
        clock = self._clock(self.current)
        for home, accesses in self._handed_back:
            for access in accesses if home == self.current else ():
                if not access.is_done(clock):
                    self._race(RaceKind.FREED_IN_USE, access, access.place)
                else:
                    self.protecting.ordered(RaceKind.FREED_IN_USE, access, self.current)
        self._handed_back = [entry for entry in self._handed_back if entry[0] != self.current]

    def _clock(self, stream: int) -> Clock:
        clock = self._clocks[stream]
        if self._versions[stream] != self._host_version:
            _join(clock, self._host)
            self._versions[stream] = self._host_version
        return clock

    def _race(self, kind: RaceKind, earlier: Access, at: Frame | None = None) -> None:
        second = at or self._place()
        if second is None or len(self.races) >= MOST_RACES:
            return
        first, count = self.races.get((kind, second), (None, 0))
        self.races[kind, second] = first or earlier.place, count + 1


def _join(clock: Clock, other: Clock) -> None:
    for stream, number in other.items():
        if clock.get(stream, 0) < number:
            clock[stream] = number
