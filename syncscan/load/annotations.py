"""Find scopes among ops, since torch 1.8 and 1.9 record all ranges as ops.

Until kineto's commit 6f9c0eef (June 2021, torch 1.10), steps, optimizers, loaders and a program's own `record_function`
were in the category of ops, `Operator`. Names and parents distinguish them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from syncscan.model.arrays import Bool, Int64, looked_up
from syncscan.model.slice_names import is_annotation, is_op
from syncscan.model.trace import NONE, Category

WITHOUT_ANNOTATIONS = "Operator"
"""The category of torch 1.8 and 1.9 for ops and scopes alike."""


def tell_annotations(columns: dict[str, Any], strings: Sequence[str], categories: frozenset[str]) -> None:
    """Change the category of ranges that aren't ops to annotation, in place.

    By name in every trace: torch's names of steps, optimizers and loaders. In a trace from before annotations existed,
    also ranges without an op's name that autograd doesn't record and that lie in none of torch's own ops.

    Args:
        columns: columns of `Slices`, sorted, with each row's parent.
        strings: strings that its names index.
        categories: categories as written in the trace.
    """
    ops = np.flatnonzero(columns["category"] == Category.CPU_OP)
    names = columns["name"][ops]
    scopes = _that(is_annotation, strings, names)
    if WITHOUT_ANNOTATIONS in categories:
        free = ~_that(is_op, strings, names) & (columns["sequence"][ops] == NONE)
        scopes |= free & ~_in_ops(columns, strings, ops)
    if scopes.any():
        columns["category"][ops[scopes]] = Category.ANNOTATION


def _that(predicate: Callable[[str], bool], strings: Sequence[str], names: Any) -> Bool:
    """Return which of these names satisfy `predicate`, called once per name."""
    used, hits = np.zeros(len(strings), np.bool_), np.zeros(len(strings), np.bool_)
    used[names] = True
    hits[[number for number in np.flatnonzero(used).tolist() if predicate(strings[number])]] = True
    mask: Bool = looked_up(hits, names)
    return mask


def _in_ops(columns: dict[str, Any], strings: Sequence[str], rows: Int64) -> Bool:
    """Return which of these rows lie directly in a range with an op's name."""
    parent = columns["parent"][rows]
    inside = (parent != NONE) & (columns["category"][parent] == Category.CPU_OP)
    inside[inside] = _that(is_op, strings, columns["name"][parent[inside]])
    return np.asarray(inside, np.bool_)
