"""From host slices to the scopes around them, as numbers of paths: what lies in the same scopes has the same number."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from syncscan.model.arrays import Int32, Int64, among, distinct, numbered_pairs
from syncscan.model.names import is_step
from syncscan.model.trace import DEEPEST, HOST, NONE, Category, Slices, Trace, of_categories


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
            rows: of ops, ascending.
            tops: rows of the slices that lie in no other, ascending and at least one, by which backward is led to
                forward: what follows one, up to the next, lies in it.
        """
        starts, each = self._turns
        paths = _spread(each, np.searchsorted(rows, starts[1:]), len(rows))
        led = self._led(tops)
        turns = np.flatnonzero(led[1:] != led[:-1]) + 1
        if len(turns) or led[0] != NONE:
            backward = _spread(led[np.append(0, turns)], np.searchsorted(rows, tops[turns]), len(rows))
            np.copyto(paths, backward, where=paths == NONE)
        return paths

    def names(self, path: int) -> tuple[str, ...]:
        """The names of a path's scopes, outermost first."""
        found: list[str] = []
        while path != NONE:
            path, name = self._steps[path]
            found.append(self.trace.strings[name])
        return tuple(found[::-1])

    @cached_property
    def _turns(self) -> tuple[Int64, Int32]:
        """Ascending rows, the first of all among them, and the path of the host slices from each up to the next.

        A slice lies in the same scopes as the one before it, unless it lies directly in what holds a scope, or in
        nothing: slices in one that holds none follow it without a gap.
        """
        s, inner = self.trace.slices, _Holders(self.trace, self._scopes)
        starts, around = [np.zeros(1, np.int64)], [np.full(1, NONE, np.int32)]
        for run in map(self.trace.track_rows, distinct(s.track[self._scopes]).tolist()):
            parent = s.parent[run]
            begun = np.flatnonzero(inner.holds.take(parent) & of_categories(s.category[run], HOST))
            starts += [run.start + begun, np.array([run.stop])]
            around += [parent[begun], np.full(1, NONE, np.int32)]
        rows, holders = np.concatenate(starts), np.concatenate(around)
        turns = np.flatnonzero(np.append(True, holders[1:] != holders[:-1]))
        return rows[turns], self._paths(inner).take(inner.scope_of(holders[turns]))

    @cached_property
    def _scopes(self) -> Int64:
        """The rows of the program's scopes."""
        return self.trace.where(lambda name: not is_step(name), Category.ANNOTATION)

    def _paths(self, inner: _Holders) -> Int32:
        """For the place of each scope in `_Holders.rows` the number of the path that ends in it; NONE for scopes too
        deep, for what is no scope, and for one place more.
        """
        s, paths = self.trace.slices, np.full(len(inner.rows) + 1, NONE, np.int32)
        left, around = inner.rows.searchsorted(self._scopes), inner.scope_of(s.parent[self._scopes])
        for _ in range(DEEPEST):
            now = (around == len(inner.rows)) | (paths[around] != NONE)
            if not now.any():
                break
            known, which = numbered_pairs(paths[around[now]], s.name[inner.rows[left[now]]])
            paths[left[now]] = len(self._steps) + which
            self._steps += [(path, name) for path, name in known.tolist()]
            left, around = left[~now], around[~now]
        return paths

    def _led(self, tops: Int64) -> Int32:
        """For each of these rows, where it is of a backward op, its forward op's path; NONE for others."""
        s, led = self.trace.slices, np.full(len(tops), NONE, np.int32)
        is_op = (s.category.take(tops) == int(Category.CPU_OP)) & (s.sequence.take(tops) != NONE)
        backward = np.flatnonzero(is_op & (s.fwd_thread.take(tops) > 0))
        if len(backward):
            starts, each = self._turns
            made_by = _made_by(s, self._forward(s.sequence[tops[backward]]), tops[backward])
            known = made_by != NONE
            led[backward[known]] = each[starts.searchsorted(made_by[known], side="right") - 1]
        return led

    def _forward(self, asked: Int64) -> Int64:
        """The rows of the forward ops with one of these sequence numbers, ascending; and more."""
        s, (rows, _) = self.trace.slices, self.trace.rows_of(Category.CPU_OP)
        numbers = s.sequence.take(rows)
        rows = rows[(numbers >= asked.min()) & (numbers <= asked.max())]
        forward: Int64 = rows[s.fwd_thread.take(rows) <= 0]
        return forward


class _Holders:
    """The host slices that are or hold any of these scopes: few of all."""

    def __init__(self, trace: Trace, scopes: Int64) -> None:
        parent = trace.slices.parent
        self.holds = np.zeros(len(parent) + 1, np.bool_)
        """Which rows they are; and one place more, which is true, for NONE."""
        self.holds[scopes] = True
        at = distinct(parent[scopes])
        while len(at := at[~self.holds[at] & (at != NONE)]):
            self.holds[at] = True
            at = distinct(parent[at])
        self.rows = np.flatnonzero(self.holds)
        """Ascending."""
        self.holds[NONE] = True
        self._scope = self._places(parent[self.rows])
        self._scope[self.rows.searchsorted(scopes)] = self.rows.searchsorted(scopes)
        self._scope = np.append(self._scope, len(self.rows))
        while (further := self._scope.take(self._scope)).tobytes() != self._scope.tobytes():  # twice as far each time
            self._scope = further

    def scope_of(self, rows: Int32) -> Int64:
        """For each of these, or NONE, the place in `rows` of the innermost scope that it is or lies in; of none the
        place behind all.
        """
        return self._scope.take(self._places(rows))

    def _places(self, rows: Int32) -> Int64:
        return np.where(rows == NONE, len(self.rows), self.rows.searchsorted(rows))


def _spread(values: Int32, begun: Int64, count: int) -> Int32:
    """As many values as `count`: the first up to the first of these places, each further one from its place on."""
    return np.repeat(values, np.diff(begun, prepend=0, append=count))


def _made_by(s: Slices, forward: Int64, backward: Int64) -> Int64:
    """For each backward op's row the last of the forward ops with its number that began before it; NONE without.

    Args:
        s: the slices.
        forward: ascending.
        backward: in any order.
    """
    if not len(forward) or not len(backward):
        return np.full(len(backward), NONE, np.int64)
    if s.track.item(int(forward[0])) != s.track.item(int(forward[-1])):
        forward = forward[np.argsort(s.ts[forward], kind="stable")]
    forward = forward[np.argsort(s.sequence[forward], kind="stable")]  # quick: on one thread the numbers ascend
    numbers, asked = s.sequence[forward], s.sequence[backward]
    last = np.searchsorted(numbers, asked, side="right") - 1
    found = np.where(numbers[last] == asked, forward[last], NONE)
    late = np.flatnonzero((found != NONE) & (s.ts[found] >= s.ts[backward]))
    if len(late):
        same = among(numbers, np.sort(asked[late]))
        found[late] = _sorted_out(s, forward[same], backward[late])
    return found


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
