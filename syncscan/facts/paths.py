"""Find the chain of slices around any host slice; chains with equal names share them."""

from __future__ import annotations

from itertools import compress

import msgspec
import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.slice_names import is_step, is_wrapper
from syncscan.model.trace import NONE, Category, Trace, outwards

_KINDS = 16
"""More than the number of categories: name and category are packed in one number."""


class PathNames(msgspec.Struct, frozen=True, eq=False):
    """Names of a chain of slices; all chains with the same names and categories share one object."""

    every: tuple[str, ...]
    """All names, outermost first; all step annotations are given the name of the first one."""
    ops: tuple[str, ...]
    """Names of the ops."""
    scopes: tuple[str, ...]
    """Names of the annotations, without the profiler's steps."""
    is_op: tuple[bool, ...]
    worker: int
    """Index of the outermost op that does work itself rather than only contain others, or NONE."""


class Path(msgspec.Struct, frozen=True, eq=False):
    """A chain of slices, each inside the one before."""

    rows: tuple[int, ...]
    """Rows of the slices, outermost first."""
    ops: tuple[int, ...]
    """Rows of the ops."""
    names: PathNames

    @property
    def worker(self) -> int:
        """Row of the outermost op that does work itself rather than only contain others, or NONE."""
        return self.ops[self.names.worker] if self.names.worker != NONE else NONE


NOWHERE = Path((), (), PathNames((), (), (), (), NONE))


class Paths:
    """Looks up the slices around a slice of a trace, and caches the chains."""

    def __init__(self, trace: Trace) -> None:
        self._strings, self._slices, self._ancestors = trace.strings, trace.slices, trace.ancestors
        steps = [number for number in trace.names_of(Category.ANNOTATION) if is_step(trace.strings[number])]
        self._same = np.arange(len(trace.strings))
        self._same[steps] = min(steps, default=NONE)  # a call site has the same chain in each step
        self._known: dict[int, Path] = {NONE: NOWHERE}
        self._names: dict[tuple[int, ...], PathNames] = {}

    def to(self, row: int) -> Path:
        """Return the chain that ends with the slice in this row; an empty one for NONE."""
        path = self._known.get(row)
        if path is None:
            rows = tuple(outwards(self._slices.parent, row)[::-1])
            names = self._names_of(tuple(self._codes(np.array(rows)).tolist()))
            path = self._known[row] = Path(rows, tuple(compress(rows, names.is_op)), names)
        return path

    def outermost_op(self, row: int) -> int:
        return next(iter(self.to(self._slices.parent.item(row)).ops), NONE)

    def _codes(self, rows: Int64) -> Int64:
        """Return one number for name and category of each of these rows."""
        name, category = self._slices.name[rows], self._slices.category[rows]
        codes: Int64 = np.where(category == int(Category.ANNOTATION), self._same[name], name)
        return codes * _KINDS + category

    def _names_of(self, codes: tuple[int, ...]) -> PathNames:
        path_names = self._names.get(codes)
        if path_names is None:
            every = tuple(self._strings[code // _KINDS] for code in codes)
            is_op = tuple(code % _KINDS == Category.CPU_OP for code in codes)
            is_scope = (code % _KINDS == Category.ANNOTATION for code in codes)
            ops = tuple(compress(every, is_op))
            path_names = self._names[codes] = PathNames(
                every=every,
                ops=ops,
                scopes=tuple(name for name in compress(every, is_scope) if not is_step(name)),
                is_op=is_op,
                worker=next((at for at, op in enumerate(ops) if not is_wrapper(op)), NONE),
            )
        return path_names


__all__ = ["NOWHERE", "Path", "PathNames", "Paths"]
