"""Order the copies of a running program: which of them are done, by what the host has waited for.

Copies are numbered in the order in which they begin. A mark says up to which number the copies of each stream are done
once a stream has come so far; the host's own says up to which they are done by now.
"""

from __future__ import annotations

Stream = tuple[int, ...]
"""Number, device and kind of device of a stream, as torch tells the current one."""
Mark = dict[Stream, int]
"""Stream → up to which number its copies are done."""


class CopyOrder:
    """The order of copies, events and waits since a guard began."""

    def __init__(self) -> None:
        self.count = 0
        """Copies that have begun."""
        self._host: Mark = {}
        self._host_all = 0
        self._before: dict[Stream, Mark] = {}

    def mark(self, stream: Stream) -> Mark:
        """Return what is done once a stream has come so far, as an event records it."""
        return {**self._before.get(stream, {}), stream: self.count}

    def stream_waits(self, stream: Stream, mark: Mark) -> None:
        """Order what a stream does next after a mark."""
        if mark:
            _join(self._before.setdefault(stream, {}), mark)

    def host_waits(self, mark: Mark) -> None:
        """Order what the host does next after a mark."""
        _join(self._host, mark)

    def host_waits_for_all(self) -> None:
        """Order what the host does next after all that has begun."""
        self._host_all = self.count

    def done(self, stream: Stream, number: int) -> bool:
        """Return whether the host knows a copy to be done."""
        return number <= self._host_all or number <= self._host.get(stream, 0)


def _join(mark: Mark, other: Mark) -> None:
    for stream, number in list(other.items()):
        if mark.get(stream, 0) < number:
            mark[stream] = number
