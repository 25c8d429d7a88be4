"""Number the paths of scopes around host slices: slices in the same scopes have the same number."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from syncscan.facts.autograd import forward_ops
from syncscan.facts.paths import innermost_that
from syncscan.model.arrays import Int32, Int64, numbered_pairs
from syncscan.model.slice_names import is_step
from syncscan.model.trace import DEEPEST, NONE, Category, Trace


class ScopePaths:
    """Numbers the scope paths of a trace's slices.

    A backward op runs on a thread without scopes. It takes the path that is open on the steps' thread meanwhile, such
    as a scope around `loss.backward()`; where none is, the path of its forward op.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._steps: list[tuple[int, int]] = []
        """For each path, the number of the path around it (or NONE), and the name of its innermost scope."""

    def of(self, rows: Int64, tops: Int64) -> Int32:
        """Return the path number of each of these rows of ops, NONE without scopes.

        `tops` lie in no other slice, ascending and at least one, among which backward ops are; the rows after one, up
        to the next, lie in it.
        """
        paths = self._paths.take(rows)
        without = np.flatnonzero(paths == NONE)
        of_top = np.maximum(tops.searchsorted(rows[without], side="right") - 1, 0)
        paths[without] = self._led(tops).take(of_top)
        return paths

    def names(self, path: int) -> tuple[str, ...]:
        names: list[str] = []
        while path != NONE:
            path, name = self._steps[path]
            names.append(self.trace.strings[name])
        return tuple(names[::-1])

    @cached_property
    def _paths(self) -> Int32:
        """Path number of each slice, NONE without scopes or in scopes too deep; one more entry, for the row NONE.

        Scopes are numbered level by level, outer ones first.
        """
        s, paths = self.trace.slices, np.full(len(self.trace.slices) + 1, NONE, np.int32)
        (left, around), ops = self._scopes, np.ones(len(s), np.bool_)
        ops[left] = False
        for _ in range(DEEPEST):
            now = (around[left] == NONE) | (paths[around[left]] != NONE)
            if not now.any():
                break
            known, which = numbered_pairs(paths[around[left[now]]], s.name[left[now]])
            paths[left[now]] = len(self._steps) + which
            self._steps += [(path, name) for path, name in known.tolist()]
            left = left[~now]
        rows = np.flatnonzero(ops)
        paths[rows] = paths[around[rows]]
        return paths

    @cached_property
    def _scopes(self) -> tuple[Int64, Int32]:
        """Rows of all scopes, ascending, and the innermost scope around each slice, or NONE."""
        rows = self.trace.where(lambda name: not is_step(name), Category.ANNOTATION)
        is_scope = np.zeros(len(self.trace.slices), np.bool_)
        is_scope[rows] = True
        return rows, innermost_that(is_scope, self.trace.slices.parent)

    def _led(self, tops: Int64) -> Int32:
        """Return the path of each row that is of a backward op, NONE for others."""
        s, led = self.trace.slices, np.full(len(tops), NONE, np.int32)
        is_op = (s.category.take(tops) == int(Category.CPU_OP)) & (s.sequence.take(tops) != NONE)
        backward = np.flatnonzero(is_op & (s.fwd_thread.take(tops) > 0))
        led[backward] = self._meanwhile(s.ts[tops[backward]])
        outside = backward[led[backward] == NONE]
        led[outside] = self._paths[forward_ops(self.trace, tops[outside])]
        return led

    def _meanwhile(self, times: Int64) -> Int32:
        """Return the path that is open on the steps' thread at each of these times, or NONE."""
        s, track = self.trace.slices, next((step.track for step in self.trace.main_steps), NONE)
        scopes, around = self._scopes
        scopes = scopes[s.track[scopes] == track]
        scopes = scopes[np.lexsort((-s.end[scopes], s.ts[scopes]))]
        if not len(scopes):
            return np.full(len(times), NONE, np.int32)
        begun = s.ts[scopes].searchsorted(times, side="right") - 1
        innermost = np.where(begun < 0, NONE, scopes[begun])
        ends = np.append(s.end, np.iinfo(np.int64).max)
        for _ in range(DEEPEST):
            over = np.flatnonzero(ends[innermost] <= times)
            if not len(over):
                break
            innermost[over] = around[innermost[over]]
        return self._paths[innermost]
