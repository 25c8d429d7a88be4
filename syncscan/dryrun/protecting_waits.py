"""Note which waits of the host order work that would race without them: whoever removes such a wait makes a race."""

from __future__ import annotations

from collections.abc import Callable

from syncscan.dryrun.recording import Frame
from syncscan.dryrun.tensor_memory import MOST_ACCESSES, Access, Clock, Region, Uses, meet
from syncscan.model.race import RaceKind

MOST_RACES = 1_000
"""Pairs of lines recorded at the most."""


class ProtectingWaits:
    """The races that waits of the host prevent; `place` returns the program's line that runs now."""

    def __init__(self, place: Callable[[], Frame | None]) -> None:
        self.races: dict[Frame, tuple[RaceKind, Frame | None, Frame]] = {}
        """Line of a wait → the race that there would be without it, and its two lines."""
        self._place = place
        self._milestones: dict[int, list[tuple[int, Frame]]] = {}
        """Stream → up to which number the host has waited for it, and where."""
        self._orders: set[tuple[int, int]] = set()
        """Streams that have waited for another one by themselves, with that."""
        self._copies: list[Access] = []
        """Copies that may still run."""
        self._awaited: dict[tuple[int, int], Frame] = {}
        """Stream and number of a copy whose memory wasn't used since → the line that waited for it."""

    @property
    def awaited_copies(self) -> bool:
        """Whether the host has waited for a copy whose memory wasn't used since."""
        return bool(self._awaited)

    def stream_waits(self, waiting: int, mark: Clock) -> None:
        self._orders.update((waiting, other) for other in mark)

    def host_waited(self, before: Clock, now: Clock) -> None:
        """Note at the running line up to which number of each stream the host has waited."""
        if (place := self._place()) is not None:
            for stream, number in now.items():
                if number > before.get(stream, 0):
                    self._milestones.setdefault(stream, []).append((number, place))

    def copied(self, copy: Access) -> None:
        self._copies = [*self._copies, copy][-MOST_ACCESSES:]

    def copies_done(self, host: Clock) -> None:
        """Note where the host has waited for copies that are done now."""
        done = [copy for copy in self._copies if copy.is_done(host)]
        place = self._place() if done else None
        if place is not None:
            self._copies = [copy for copy in self._copies if copy not in done]
            self._awaited.update({(copy.stream, copy.number): place for copy in done})
            while len(self._awaited) > MOST_ACCESSES:
                del self._awaited[next(iter(self._awaited))]

    def host_uses(self, uses: Uses, region: Region, *, reads: bool) -> None:
        """Note that the host uses memory that copies used, and which waits made that safe."""
        for copy in uses.writes if reads else (*uses.writes, *uses.reads):
            wait = self._awaited.get((copy.stream, copy.number))
            second = self._place() if wait is not None and meet(copy.region, region) else None
            if wait is not None and second is not None:
                del self._awaited[copy.stream, copy.number]
                kind = RaceKind.READ_BEFORE_COPY if reads else RaceKind.WRITE_BEFORE_COPY
                self._add(wait, kind, copy.place, second)

    def ordered(self, kind: RaceKind, earlier: Access, stream: int) -> None:
        """Note that a stream's work comes after that of another, for which it didn't wait by itself: the host did."""
        if (stream, earlier.stream) in self._orders:
            return
        waits = (place for number, place in self._milestones.get(earlier.stream, ()) if number >= earlier.number)
        wait, second = next(waits, None), self._place()
        if wait is not None and second is not None:
            self._add(wait, kind, earlier.place, second)

    def _add(self, wait: Frame, kind: RaceKind, first: Frame | None, second: Frame) -> None:
        if len(self.races) < MOST_RACES:
            self.races.setdefault(wait, (kind, first, second))
