"""Recorded events on their way through, and whether syncscan's own tracks were among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_OURS = b"syncscan_"
_DRAWN = (b'"cat":"syncscan_', b'"cat": "syncscan_')
"""How a slice of ours begins, as we write it and as Python's json writes it again."""


class Watched:
    """Passes text on and looks at it.

    Args:
        recorded: text of events.
    """

    def __init__(self, recorded: Iterable[bytes]) -> None:
        self._recorded = recorded
        self.drawn = False
        """Whether slices of ours came past so far."""

    def __iter__(self) -> Iterator[bytes]:
        for text in self._recorded:
            self.drawn = self.drawn or (_OURS in text and any(mark in text for mark in _DRAWN))
            yield text

    def unless_drawn(self, added: Iterable[bytes]) -> Iterator[bytes]:
        """The added events, or none where the recorded ones, which must have passed by then, had them already."""
        if not self.drawn:
            yield from added
