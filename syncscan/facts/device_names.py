"""Search the names of device work for words, in all names at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.trace import DEVICE, Trace


class DeviceNames:
    """Names of a trace's kernels, copies and memsets as one lower-case text, in a column of bytes."""

    def __init__(self, trace: Trace) -> None:
        self._strings = trace.strings  # not the trace, which holds this object
        self._numbers = sorted({number for category in DEVICE for number in trace.names_of(category)})
        names = [self._strings[number] for number in self._numbers]
        text = "\n".join(names).encode("ascii", "replace").lower()  # one byte per character
        self._letters = np.frombuffer(text, np.uint8)
        self._behind = np.cumsum([len(name) + 1 for name in names])
        """Where in the text the name after each one begins."""

    def matching(self, predicate: Callable[[str], Any], words: Iterable[str]) -> Bool:
        """Return a mask over `Trace.strings`: the device names that satisfy `predicate`.

        Args:
            predicate: called only for names that contain one of the words; it must be false for all others.
            words: lower-case words of at least two ASCII letters; matching ignores case.
        """
        hits = np.zeros(len(self._strings), np.bool_)
        for place in distinct(np.concatenate([self._holding(word.encode()) for word in words])).tolist():
            number = self._numbers[place]
            hits[number] = bool(predicate(self._strings[number]))
        return hits

    def _holding(self, word: bytes) -> Int64:
        """Return the indices of the names that contain this word, ascending, once per occurrence.

        Two letters together are so rare that the others are compared at few places only; `str.find` takes two to five
        times as long.
        """
        letters, most = self._letters, max(0, len(self._letters) - len(word) + 1)
        at = np.flatnonzero((letters[:most] == word[0]) & (letters[1 : most + 1] == word[1]))
        for number, letter in enumerate(word[2:], 2):
            at = at[letters.take(at + number) == letter]
        places: Int64 = self._behind.searchsorted(at, side="right")
        return places
