"""Compare the values in the files that runs of a program write, knowing which differ between two unchanged runs."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from syncscan.fixing.file_values import Leaves
from syncscan.fixing.same_lines import SteadyLines
from syncscan.fixing.same_text import TOLERANCE, instead, same_line, same_number

OF_ALL = 10.0
"""An element of an array may also differ by this many tolerances of the array's root mean square: where a sum's parts
cancel, its rounding errors don't."""


class SteadyValues:
    """The values of two unchanged runs by place, and which of them are the same in both."""

    def __init__(self, values: Leaves, again: Leaves) -> None:
        self._values = values
        self._steady = {place for place in values.keys() & again.keys() if same_value(values[place], again[place])}
        self._known = values.keys() | again.keys()
        self.noise = [place for place in [*values, *(again.keys() - values.keys())] if place not in self._steady]
        """Places whose values differ between the two."""

    def has_results(self, constants: Container[float] = ()) -> bool:
        """Return whether a number that is no constant, an array, or a file's other bytes are the same in both."""
        return any(_is_result(self._values[place], constants) for place in self._steady)

    def differs(self, other: Leaves, does: str) -> str:
        """Return how another run's values differ, as the end of a sentence begun with `does`; empty if they don't."""
        for place in (place for place in self._values if place in self._steady):
            if place not in other:
                return f"{does} no value {place}"
            if not same_value(self._values[place], other[place]):
                return f"{does} {_difference(other[place], self._values[place])}" + (f" as {place}" if place else "")
        strange = [place for place in other if place not in self._known]
        if strange and not self.noise:
            return f"{does} a value {strange[0]}, as no unchanged run does"
        return ""


def same_value(a: Any, b: Any) -> bool:
    """Return whether two values are equal: of one type, and fractions up to rounding."""
    if isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and _same_array(np.asarray(a), np.asarray(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return same_number(repr(a), repr(b))
    if isinstance(a, str):
        left, right = a.splitlines(), b.splitlines()
        return len(left) == len(right) and all(map(same_line, left, right))
    return bool(a == b)


def _same_array(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    equal = (x == y) | (np.isnan(x) & np.isnan(y))
    finite = np.isfinite(x) & np.isfinite(y)
    if equal.all() or not (equal | finite).all():
        return bool(equal.all())
    size = np.sqrt(np.mean(np.abs(x[finite]) ** 2))
    allowed = TOLERANCE * np.maximum(np.abs(x), np.abs(y)) + OF_ALL * TOLERANCE * size
    return bool((equal | (np.abs(x - y) <= allowed)).all())


def _difference(new: Any, old: Any) -> str:
    arrays = [isinstance(value, np.ndarray) and value.size > 1 for value in (new, old)]
    if all(arrays):
        return "other numbers"
    if any(isinstance(value, bytes) for value in (new, old)):
        return "other bytes"
    return instead(f"{_kind(new, old)}{new}", f"{_kind(old, new)}{old}")


def _kind(value: Any, other: Any) -> str:
    """Return the type of a value where the other is of another type."""
    return "" if type(value) is type(other) else f"{type(value).__name__} "


def _is_result(value: Any, constants: Container[float]) -> bool:
    if isinstance(value, str):
        return "\n" in value and SteadyLines(value, value).has_results(constants)
    if isinstance(value, np.ndarray | bytes):
        return bool(len(value) if isinstance(value, bytes) else value.size)
    number = isinstance(value, int | float | complex | np.generic) and not isinstance(value, bool)
    return number and value not in constants
