"""Say which part of its memory a tensor lies in, and whether two parts have a byte in common."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

MOST_ELEMENTS = 1 << 16
"""Elements of a part with gaps that are looked at one by one; larger ones with gaps are taken to be apart."""

MOST_REMEMBERED = 4_096
"""Regions remembered by size and strides: a program uses few."""


class Region(NamedTuple):
    """A part of a memory, in bytes; one with gaps says its elements, too."""

    begin: int
    end: float
    gaps: tuple[int, int, tuple[int, ...], tuple[int, ...]] | None = None
    """Bytes of an element, offset, sizes and strides in elements; None of a part without gaps."""


EVERYTHING = Region(0, float("inf"))


def region_of(tensor: Any) -> Region:
    """Return the part of its storage that a tensor with strides lies in."""
    if tensor.is_contiguous():  # a nested tensor has no shape
        return _region(tensor.itemsize, tensor.storage_offset(), (tensor.numel(),), (1,))
    return _region(tensor.itemsize, tensor.storage_offset(), tensor.shape, tensor.stride())


@functools.lru_cache(maxsize=MOST_REMEMBERED)
def _region(size: int, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Region:
    count = math.prod(sizes)
    last = offset + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True)) if count else offset - 1
    region = Region(offset * size, (last + 1) * size)
    dense = last + 1 - offset == count
    return region if dense else region._replace(gaps=(size, offset, tuple(sizes), strides))


def region_of_array(array: Any, begin: int) -> Region:
    """Return the part of a memory that a numpy array lies in."""
    size, offset = array.itemsize, array.__array_interface__["data"][0] - begin
    reach = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    first, last = offset + sum(x for x in reach if x < 0), offset + sum(x for x in reach if x > 0) + size
    region = Region(first, last)
    if last - first == array.nbytes or any(at % size for at in (offset, *array.strides)):
        return region
    return region._replace(gaps=(size, offset // size, array.shape, tuple(n // size for n in array.strides)))


def meet(a: Region, b: Region) -> bool:
    """Return whether two parts of one memory have a byte in common, as far as that is known."""
    if a.begin >= b.end or b.begin >= a.end:
        return False
    if a.gaps is None and b.gaps is None:
        return True
    ours, theirs = _bytes(a, b), _bytes(b, a)
    return ours is not None and theirs is not None and bool(np.isin(ours, theirs).any())


def within(inner: Region, outer: Region) -> bool:
    """Return whether a part lies in another one for sure."""
    return inner == outer or (outer.gaps is None and outer.begin <= inner.begin and inner.end <= outer.end)


def _bytes(region: Region, other: Region) -> Any:
    """Return where the elements of a part begin, or its bytes within the other part; None where they are too many."""
    if region.gaps is None:
        begin, end = max(region.begin, other.begin), min(region.end, other.end)
        return np.arange(begin, end, dtype=np.int64) if end - begin <= 8 * MOST_ELEMENTS else None
    size, offset, sizes, strides = region.gaps
    if np.prod(sizes) > MOST_ELEMENTS:
        return None
    at = np.full(1, offset, np.int64)
    for n, stride in zip(sizes, strides, strict=True):
        at = np.add.outer(at, np.arange(n) * stride).reshape(-1)
    return np.add.outer(at * size, np.arange(size)).reshape(-1)
