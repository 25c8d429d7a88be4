"""Look up numbers for millions of keys of which few differ: threads, names, the layouts of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from syncscan.model.arrays import Int64

UInt64 = np.ndarray[Any, np.dtype[np.uint64]]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SLOT_BITS = 16


def mixed(hashes: UInt64 | np.uint64, words: UInt64) -> UInt64:
    """Return hashes of some words and these ones, which two of a million keys share by a chance of one in millions."""
    products: UInt64 = (words ^ hashes) * _MULTIPLIER
    products ^= products >> np.uint64(29)
    return products


class Lookup:
    """Looks up numbers for keys of which few occur in millions of rows.

    `find` returns them for keys that weren't there before, one row per number; it is called with the place of each in
    the keys looked up, too.
    """

    def __init__(self, find: Callable[[Int64, Int64], Any], width: int = 1) -> None:
        self._find = find
        self.numbers = np.zeros((width, 0), np.int64)
        """The numbers of all keys, one row each."""
        self._keys, self._places = np.zeros(0, np.int64), dict[int, int]()
        # by the keys' hashes: a search among sorted keys takes ten times as long
        self._slots = np.zeros(1 << _SLOT_BITS, np.int64)

    def of(self, keys: Int64) -> Any:
        """Return the numbers of these keys, one row each."""
        places = self.places(keys)
        return self.numbers.take(places, axis=1)

    def places(self, keys: Int64) -> Int64:
        """Return where in `numbers` those of these keys are."""
        places: Int64 = self._slots.take(_slots(keys))
        missed = np.flatnonzero(self._keys.take(places) != keys) if len(self._keys) else np.arange(len(keys))
        if len(missed):
            different, first, which = np.unique(keys[missed], return_index=True, return_inverse=True)
            self._add(different, missed[first])
            places[missed] = np.array([self._places[key] for key in different.tolist()], np.int64)[which]
        return places

    def _add(self, keys: Int64, at: Int64) -> None:
        new = [place for place, key in enumerate(keys.tolist()) if key not in self._places]
        if not new:  # they share slots with others
            return
        keys, places = keys[new], len(self._keys) + np.arange(len(new))
        numbers = np.array(self._find(keys, at[new]), np.int64).reshape(-1, len(new))
        self.numbers = np.concatenate([self.numbers, numbers], axis=1)
        self._keys = np.append(self._keys, keys)
        self._places.update(zip(keys.tolist(), places.tolist(), strict=True))
        self._slots[_slots(keys)] = places


def _slots(keys: Int64) -> Int64:
    slots: Int64 = (keys.view(np.uint64) * _MULTIPLIER >> np.uint64(64 - _SLOT_BITS)).view(np.int64)
    return slots


__all__ = ["Lookup", "UInt64", "mixed"]
