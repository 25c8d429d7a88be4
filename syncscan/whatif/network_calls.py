"""Count how often a pass of a step calls a network, since each call of a compiled one costs.

A recording doesn't say where a call begins. Equal layers in a row are taken to be one network's. What repeats as a
whole, layers and what is around them, is taken to be a call each: one network for several inputs, or two of one kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from syncscan.facts.network import OutermostOp, is_product
from syncscan.model.arrays import Bool, Int64
from syncscan.model.trace import Trace

LEAST_PRODUCTS = 3
"""Least products of matrices or convolutions in what repeats."""
MOST_OPS = 4_000
"""A longer pass is taken to be one call: what is compared grows with the square."""


def network_calls(trace: Trace, ops: Sequence[OutermostOp]) -> int:
    """Return how many calls of networks these ops of one forward pass are.

    Args:
        trace: the trace whose ops they are.
        ops: the ops, in time order.
    """
    launching = [op for op in ops if op.work]
    products = np.array([any(map(is_product, op.inner)) for op in launching], np.bool_)
    if products.sum() < 2 * LEAST_PRODUCTS or len(launching) > MOST_OPS:
        return 1
    kinds = _kinds(trace, launching)
    begin, length = _longest_repeated(kinds)
    unit = slice(begin, begin + length)
    if products[unit].sum() < LEAST_PRODUCTS or not _has_layers(kinds[unit], products[unit]):
        return 1
    places = _places(kinds, kinds[unit])
    others = products.sum() - len(places) * products[unit].sum()
    return len(places) + bool(others)


def _kinds(trace: Trace, ops: Sequence[OutermostOp]) -> Int64:
    """Return a number for each op, the same for those that launch the same kernels of the same sizes."""
    s, numbers = trace.slices, dict[Any, int]()
    keys = [(op.name, tuple((int(s.name[row]), int(s.blocks[row])) for row in op.work)) for op in ops]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _longest_repeated(kinds: Int64) -> tuple[int, int]:
    """Return where the longest run of kinds begins that comes once more without overlap, and its length."""
    count = len(kinds)
    most, best = 0, 0
    matched, places = np.zeros(count, np.int64), np.arange(count)
    for at in range(count):
        matched = np.where(kinds == kinds[at], np.append(0, matched[:-1]) + 1, 0)
        apart = np.minimum(matched, places - at)
        longest = int(apart.max())
        if longest > most:
            most, best = longest, at - longest + 1
    return best, most


def _has_layers(unit: Int64, products: Bool) -> bool:
    """Return whether layers that repeat make up half of a unit, and not all of it."""
    for period in range(1, len(unit) // 2 + 1):
        same = unit[period:] == unit[:-period]
        if same.all():
            return False
        ends = np.flatnonzero(np.append(~same, True))
        runs = np.diff(np.append(-1, ends)) - 1
        at = int(runs.argmax())
        begin, run = int(ends[at]) - int(runs[at]), int(runs[at])
        if run >= period and 2 * (run + period) >= len(unit) and products[begin : begin + period].any():
            return not _periodic(unit)
    return False


def _periodic(unit: Int64) -> bool:
    return any((unit[period:] == unit[:-period]).all() for period in range(1, len(unit) // 2 + 1))


def _places(kinds: Int64, unit: Int64) -> list[int]:
    """Return where a unit begins, without overlaps."""
    places, at = list[int](), 0
    while at + len(unit) <= len(kinds):
        if (kinds[at : at + len(unit)] == unit).all():
            places.append(at)
            at += len(unit)
        else:
            at += 1
    return places
