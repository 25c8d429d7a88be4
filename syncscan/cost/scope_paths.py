"""From host slices to the scopes around them, as numbers of paths: what lies in the same scopes has the same number."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from syncscan.model.arrays import Int32, Int64, blocks, distinct, numbered_pairs
from syncscan.model.names import is_step
from syncscan.model.trace import DEEPEST, NONE, Category, Slices, Trace

_TABLE = 8
"""So many entries a forward op the table of sequence numbers may have, before sorting costs less."""


class ScopePaths:
    """Numbers the ways of scopes that lead to any slice of one trace.

    What backward does lies where its forward op does: the two share a sequence number, and of several forward ops with
    one the last before it made it (torch/csrc/profiler/collection.cpp, generateForwardBackwardLink).
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._steps: list[tuple[int, int]] = []
        """Of each path the number of the one around it (NONE: none), and its innermost scope's name."""

    def of(self, rows: Int64, tops: Int64) -> Int32:
        """For each of these rows the number of its path, NONE without scopes.

        Args:
            rows: of host slices, ascending.
            tops: rows of the slices that lie in no other, ascending and at least one, by which backward is led to
                forward: what follows one, up to the next, lies in it.
        """
        paths = np.empty(len(rows), np.int32)
        for some in blocks(len(rows)):
            paths[some] = self._paths.take(self._scope_of(rows[some]))
        led = self._paths.take(self._scope_of(self._forward.take(tops)))  # NONE is led to NONE
        bare = np.flatnonzero(paths == NONE)
        begun = np.searchsorted(rows[bare], tops[1:])
        paths[bare] = np.repeat(led, np.diff(begun, prepend=0, append=len(bare)))
        return paths

    def names(self, path: int) -> tuple[str, ...]:
        """The names of a path's scopes, outermost first."""
        found: list[str] = []
        while path != NONE:
            path, name = self._steps[path]
            found.append(self.trace.strings[name])
        return tuple(found[::-1])

    def _scope_of(self, rows: Int64 | Int32) -> Int32:
        """For each of these rows, or NONE, the row of the innermost scope that it is or lies in, NONE without."""
        scope: Int32 = self._up.take(self._up.take(rows))
        return scope

    @cached_property
    def _up(self) -> Int32:
        """Of each row that holds others its innermost scope, of the rest the row that it lies in; NONE without, and on
        threads that have no scopes; one more at the end, for NONE. A scope's row leads to itself.
        """
        s = self.trace.slices
        up = np.full(len(s) + 1, NONE, np.int32)
        holds, ends = np.zeros(len(up), np.bool_), np.zeros(len(up), np.bool_)
        for run in map(self.trace.track_rows, distinct(s.track[self._scopes]).tolist()):
            up[run] = s.parent[run]
            for rows in blocks(run.stop - run.start, run.start):
                holds[s.parent[rows]] = True
        up[self._scopes] = self._scopes
        ends[self._scopes] = ends[NONE] = True
        left = np.flatnonzero(holds)
        while len(left := left[~ends.take(up.take(left))]):  # twice as far each time
            up[left] = up.take(up.take(left))
        return up

    @cached_property
    def _scopes(self) -> Int64:
        """The rows of the program's scopes."""
        return self.trace.where(lambda name: not is_step(name), Category.ANNOTATION)

    @cached_property
    def _paths(self) -> Int32:
        """For each scope's row the number of the path that ends in it; NONE for others, and for scopes too deep."""
        s, count = self.trace.slices, len(self.trace.slices)
        paths = np.full(count + 1, NONE, np.int32)
        left, around = self._scopes, self._scope_of(s.parent[self._scopes])
        for _ in range(DEEPEST):
            outer = around
            now = (outer == NONE) | (paths[outer] != NONE)
            if not now.any():
                break
            known, which = numbered_pairs(paths[outer[now]], s.name[left[now]])
            paths[left[now]] = len(self._steps) + which
            self._steps += [(path, name) for path, name in known.tolist()]
            left, around = left[~now], around[~now]
        return paths

    @cached_property
    def _forward(self) -> Int32:
        """For each backward op's row its forward op's; NONE for others."""
        s = self.trace.slices
        rows, _ = self.trace.rows_of(Category.CPU_OP)
        rows = rows[s.sequence.take(rows) != NONE]
        forward = s.fwd_thread.take(rows) <= 0
        own, backward = rows[forward], rows[~forward]
        found = _made_by(s, own, backward)
        of_row = np.full(len(s), NONE, np.int32)
        of_row[backward] = found
        return of_row


def _made_by(s: Slices, forward: Int64, backward: Int64) -> Int64:
    """For each backward op's row the last of the forward ops with its number that began before it; NONE without."""
    if not len(forward) or not len(backward):
        return np.full(len(backward), NONE, np.int64)
    numbers, asked = s.sequence[forward], s.sequence[backward]
    least, most = int(numbers.min()), int(numbers.max())
    of_one_thread = s.track.item(int(forward[0])) == s.track.item(int(forward[-1]))
    if of_one_thread and most - least <= _TABLE * len(forward):
        last = np.full(most - least + 2, NONE, np.int64)  # where its numbers lie, and one more for all that it lacks
        last[numbers - least] = forward  # of several with one number the last one stays
        found = last[np.where((asked >= least) & (asked <= most), asked - least, most - least + 1)]
        known = found != NONE
        if (s.ts[found[known]] < s.ts[backward[known]]).all():
            return found
    return _sorted_out(s, forward, backward)


def _sorted_out(s: Slices, forward: Int64, backward: Int64) -> Int64:
    """The same of any threads, and of forward ops that run again behind a backward one."""
    rows = np.concatenate([forward, backward])
    order = np.lexsort((rows, s.ts[rows], s.sequence[rows]))
    of_forward, numbers = order < len(forward), s.sequence[rows[order]]
    latest = np.maximum.accumulate(np.where(of_forward, np.arange(len(rows)), NONE))
    same = ~of_forward & (latest != NONE) & (numbers[latest] == numbers)
    found = np.full(len(rows), NONE, np.int64)
    found[order[same]] = rows[order[latest[same]]]
    return found[len(forward) :]
