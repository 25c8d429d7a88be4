"""From a trace to the names of its device work that hold a word: in thousands of long ones it is looked for at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.trace import DEVICE, Trace


class DeviceNames:
    """The names of one trace's kernels, copies and memsets, as one text: a column of its letters in lower case."""

    def __init__(self, trace: Trace) -> None:
        self._strings = trace.strings  # and not the trace, which keeps this
        self._numbers = sorted({number for category in DEVICE for number in trace.names_of(category)})
        names = [self._strings[number] for number in self._numbers]
        text = "\n".join(names).encode("ascii", "replace").lower()  # a byte for any character
        self._letters = np.frombuffer(text, np.uint8)
        self._behind = np.cumsum([len(name) + 1 for name in names])
        """Where in the text the name behind each one begins."""

    def that(self, predicate: Callable[[str], Any], words: Iterable[str]) -> Bool:
        """A mask over `Trace.strings`: those of these names that satisfy `predicate`.

        Args:
            predicate: asked only of names that hold one of the words: of what holds none it must be false.
            words: of two ASCII letters or more, in lower case; a name's own case doesn't matter.
        """
        hits = np.zeros(len(self._strings), np.bool_)
        for place in distinct(np.concatenate([self._holding(word.encode()) for word in words])).tolist():
            number = self._numbers[place]
            hits[number] = bool(predicate(self._strings[number]))
        return hits

    def _holding(self, word: bytes) -> Int64:
        """The places of the names that hold this word, ascending, each as often as it does.

        Two letters together are rare enough that the others are compared at a few places only; `str.find` takes two to
        five times as long.
        """
        letters, most = self._letters, max(0, len(self._letters) - len(word) + 1)
        at = np.flatnonzero((letters[:most] == word[0]) & (letters[1 : most + 1] == word[1]))
        for number, letter in enumerate(word[2:], 2):
            at = at[letters.take(at + number) == letter]
        places: Int64 = self._behind.searchsorted(at, side="right")
        return places
