"""Count how often a pass of a step calls a network, since each call of a compiled one costs.

A recording doesn't say where a call begins. Equal layers in a row are taken to be one network's. What repeats as a
whole, layers and what is around them, is taken to be a call each: one network for several inputs, or two of one kind.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
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
COVERED = 0.8
"""The least part of what lies between a pass's first and last product that one call, repeated, makes up."""
ALIKE = 0.8
"""The least part of their kernels that two calls of one network share."""


def network_calls(trace: Trace, ops: Sequence[OutermostOp]) -> int:
    """Return how many calls of networks these ops of one forward pass are."""
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


def calls_of_one_network(trace: Trace, ops: Sequence[OutermostOp], waits: Sequence[int]) -> int:
    """Return how often these ops of a forward pass call one network, as far as they prove it; 1 without proof.

    Proof is what lies between two waits (of the program, outside of its networks) and launches alike, or what repeats
    through the whole pass and has layers that repeat in it: a network of layers is no such thing, since what is before
    and behind them comes once.
    """
    return max(_alike_parts(trace, ops, waits), _periods(trace, ops), network_calls(trace, ops))


def _alike_parts(trace: Trace, ops: Sequence[OutermostOp], waits: Sequence[int]) -> int:
    """Return how many parts between waits launch mostly the same kernels, of those with a product."""
    parts: dict[int, Counter[int]] = {}
    with_product = set[int]()
    for op in ops:
        part = bisect_right(waits, op.begin)
        parts.setdefault(part, Counter()).update(int(trace.slices.name[row]) for row in op.work)
        if any(map(is_product, op.inner)):
            with_product.add(part)
    kernels = [parts[part] for part in with_product]
    return max((sum(alike(one, other) for other in kernels) for one in kernels), default=1)


def alike(one: Counter[int], other: Counter[int]) -> bool:
    return 2 * (one & other).total() >= ALIKE * (one.total() + other.total())


def _periods(trace: Trace, ops: Sequence[OutermostOp]) -> int:
    """Return how many calls with layers of their own, one behind the other, make up the pass; 1 if none do."""
    launching = [op for op in ops if op.work]
    products = np.array([any(map(is_product, op.inner)) for op in launching], np.bool_)
    if products.sum() < 2 * LEAST_PRODUCTS or len(launching) > MOST_OPS:
        return 1
    first, last = np.flatnonzero(products)[[0, -1]]
    kinds = _kinds(trace, launching, sized=False)
    for period in range(1, len(kinds) // 2 + 1):
        begin, run = _longest_run(kinds[period:] == kinds[:-period])
        unit = slice(begin, begin + period)
        if run + period < COVERED * (last - first + 1) or products[unit].sum() < LEAST_PRODUCTS:
            continue
        outside = products.sum() - products[begin : begin + run + period].sum()
        if outside > products[unit].sum() or not _has_layers(kinds[unit], products[unit]):
            return 1
        return (run + period) // period
    return 1


def _longest_run(same: Bool) -> tuple[int, int]:
    ends = np.flatnonzero(np.append(~same, True))
    runs = np.diff(np.append(-1, ends)) - 1
    at = int(runs.argmax())
    return int(ends[at]) - int(runs[at]), int(runs[at])


def _kinds(trace: Trace, ops: Sequence[OutermostOp], *, sized: bool = True) -> Int64:
    """Return a number for each op, the same for those that launch the same kernels, if `sized` of the same sizes."""
    s, numbers = trace.slices, dict[Any, int]()
    keys = [(op.name, tuple((int(s.name[row]), sized and int(s.blocks[row])) for row in op.work)) for op in ops]
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
        begin, run = _longest_run(same)
        if run >= period and 2 * (run + period) >= len(unit) and products[begin : begin + period].any():
            return not any((unit[period:] == unit[:-period]).all() for period in range(1, len(unit) // 2 + 1))
    return False


def _places(kinds: Int64, unit: Int64) -> list[int]:
    places, at = list[int](), 0
    while at + len(unit) <= len(kinds):
        if (kinds[at : at + len(unit)] == unit).all():
            places.append(at)
            at += len(unit)
        else:
            at += 1
    return places
