"""From host slices to the scopes around them, as numbers of paths: what lies in the same scopes has the same number."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from syncscan.facts.forward_ops import forward_ops
from syncscan.facts.nesting import innermost_that
from syncscan.model.arrays import Int32, Int64, numbered_pairs
from syncscan.model.names import is_step
from syncscan.model.trace import DEEPEST, NONE, Category, Trace


class ScopePaths:
    """Numbers the ways of scopes that lead to a trace's slices; what backward does lies where its forward op does."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._steps: list[tuple[int, int]] = []
        """Of each path the number of the one around it (NONE: none), and its innermost scope's name."""

    def of(self, rows: Int64, tops: Int64) -> Int32:
        """Return for each of these rows the number of its path, NONE without scopes.

        Args:
            rows: of ops.
            tops: rows of the slices that lie in no other, ascending and at least one, by which backward is led to
                forward: what follows one, up to the next, lies in it.
        """
        paths = self._paths.take(rows)
        without = np.flatnonzero(paths == NONE)
        of_top = np.maximum(tops.searchsorted(rows[without], side="right") - 1, 0)
        paths[without] = self._led(tops).take(of_top)
        return paths

    def names(self, path: int) -> tuple[str, ...]:
        """Return the names of a path's scopes, outermost first."""
        found: list[str] = []
        while path != NONE:
            path, name = self._steps[path]
            found.append(self.trace.strings[name])
        return tuple(found[::-1])

    @cached_property
    def _paths(self) -> Int32:
        """For each slice the number of its path, NONE without scopes and in scopes too deep; and, last, NONE for NONE.

        Scopes are numbered level by level, those around one before it.
        """
        s, paths = self.trace.slices, np.full(len(self.trace.slices) + 1, NONE, np.int32)
        left = self.trace.where(lambda name: not is_step(name), Category.ANNOTATION)
        is_scope = np.zeros(len(s), np.bool_)
        is_scope[left] = True
        around = innermost_that(is_scope, s.parent)
        others = np.flatnonzero(~is_scope)
        for _ in range(DEEPEST):
            now = (around[left] == NONE) | (paths[around[left]] != NONE)
            if not now.any():
                break
            known, which = numbered_pairs(paths[around[left[now]]], s.name[left[now]])
            paths[left[now]] = len(self._steps) + which
            self._steps += [(path, name) for path, name in known.tolist()]
            left = left[~now]
        paths[others] = paths[around[others]]
        return paths

    def _led(self, tops: Int64) -> Int32:
        """For each of these rows, where it is of a backward op, its forward op's path; NONE for others."""
        s, led = self.trace.slices, np.full(len(tops), NONE, np.int32)
        is_op = (s.category.take(tops) == int(Category.CPU_OP)) & (s.sequence.take(tops) != NONE)
        backward = np.flatnonzero(is_op & (s.fwd_thread.take(tops) > 0))
        led[backward] = self._paths[forward_ops(self.trace, tops[backward])]
        return led
