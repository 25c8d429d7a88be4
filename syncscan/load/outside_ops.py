"""Move calls that lie slightly outside of their op into it, by their ids.

On ROCm, calls and ops are timed by two clocks (pytorch/kineto#1082): a call may end some µs after its op, or begin
before it. The op is identified by its `External id`, which its calls carry.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.trace import CALLS, NONE, Category, of_categories

OUTSIDE_NS = 20_000
"""A call at most this far outside of its op is cut to it: 2 to 3 µs are reported, and ops of a thread follow each other
after some 10 µs."""


def move_into_ops(columns: dict[str, Any]) -> bool:
    """Cut calls to the ops that their ids name, in place, where they overlap on the same track.

    Args:
        columns: columns of `Slices`, sorted, with each row's parent by time.

    Returns:
        Whether any call was moved, so that the rows must be sorted and nested again.
    """
    calls, ops = _pairs(columns)
    if not len(calls):
        return False
    ts, dur = columns["ts"], columns["dur"]
    begin, end = ts[calls], ts[calls] + dur[calls]
    first, last = ts[ops], ts[ops] + dur[ops]
    near = (begin >= first - OUTSIDE_NS) & (end <= last + OUTSIDE_NS) & ((begin < first) | (end > last))
    near &= (begin < last) & (end > first)  # further away may be anything with the same id
    calls, begin, end = calls[near], np.maximum(begin, first)[near], np.minimum(end, last)[near]
    ts[calls], dur[calls] = begin, end - begin
    return bool(near.any())


def _pairs(columns: dict[str, Any]) -> tuple[Int64, Int64]:
    """Return the calls outside of the op that their id names, and these ops, on the same tracks.

    Before torch 2.6, a call without an op has its own correlation there, which may equal the id of any op.
    """
    calls = np.flatnonzero(of_categories(columns["category"], CALLS))
    external, parent = columns["external"], columns["parent"]
    around = np.where(parent[calls] == NONE, NONE, external[parent[calls]])
    named = external[calls]
    calls = calls[(named != NONE) & (named != around) & (named != columns["correlation"][calls])]
    ops = np.flatnonzero((columns["category"] == Category.CPU_OP) & (external != NONE)) if len(calls) else calls
    if not len(ops):
        return ops, ops
    ops = ops[np.argsort(external[ops], kind="stable")]
    at = np.minimum(np.searchsorted(external[ops], external[calls], side="right") - 1, len(ops) - 1)
    candidates = ops[np.maximum(at, 0)]
    known = (external[candidates] == external[calls]) & (columns["track"][candidates] == columns["track"][calls])
    return calls[known], candidates[known]
