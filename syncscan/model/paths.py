"""From the columns of a trace's host slices to the chain of slices around any of them, its names told once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import compress, repeat

import msgspec
import numpy as np

from syncscan.model.arrays import Int8, Int32, Int64, chains, distinct, rows_as_bytes
from syncscan.model.names import is_step, is_wrapper

CPU_OP, ANNOTATION = 0, 1
"""`Category.CPU_OP` and `Category.ANNOTATION` as plain numbers: each slice of a chain is compared with them."""

_KINDS = 16
"""More than there are categories: a name and a category are one number."""
_TOGETHER = 1 << 12
"""Chains that are climbed at once: of the deepest nesting they take some 50 MB meanwhile."""
_NONE = -1
"""Of `parent`: no slice is around this one."""


class PathNames(msgspec.Struct, frozen=True, eq=False):
    """What a chain of slices is called; every chain of the same names and kinds has the same object."""

    every: tuple[str, ...]
    """All names, outermost first; every annotation of a step has the name of the first."""
    ops: tuple[str, ...]
    """Those of ops."""
    scopes: tuple[str, ...]
    """Those of annotations; the profiler's steps are none."""
    is_op: tuple[bool, ...]
    worker: int
    """Which of the ops is the outermost that does work itself, not only holds others; NONE without."""


class Path(msgspec.Struct, frozen=True, eq=False):
    """A chain of slices, each inside the one before."""

    rows: tuple[int, ...]
    """Outermost first."""
    ops: tuple[int, ...]
    """Those of them that are ops."""
    names: PathNames

    @property
    def worker(self) -> int:
        """The row of the outermost op that does work itself, not only holds others; NONE without."""
        return self.ops[self.names.worker] if self.names.worker != _NONE else _NONE


NOWHERE = Path((), (), PathNames((), (), (), (), _NONE))


class Paths:
    """Leads from a slice to those around it; remembers the chains that were asked for.

    Args:
        strings, name: the names of a trace, and which of them each slice has.
        category, parent: of each slice.
        steps: the numbers of those strings that name annotations of steps.
        deepest: slices of a chain that count, the innermost.
    """

    def __init__(
        self,
        strings: Sequence[str],
        name: Int32,
        category: Int8,
        parent: Int32,
        steps: Sequence[int],
        deepest: int,
    ) -> None:
        self._strings, self._deepest, self._parent = strings, deepest, parent
        self._same, self._name, self._category = np.arange(len(strings)), name, category
        self._same[list(steps)] = min(steps, default=_NONE)  # one call site has the same chain in each step
        self._known: dict[int, Path] = {_NONE: NOWHERE}
        self._names: dict[tuple[int, ...], PathNames] = {}

    def to(self, row: int) -> Path:
        """The slice in this row and all around it; none at all for `NONE`."""
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = self._climbed(row)
        return known

    def to_each(self, rows: Int32 | Int64) -> list[Path]:
        """The same of each of these rows."""
        numbers = rows.tolist()
        if not self._known.keys() >= set(numbers):
            self.prepare(rows)
        return [self._known[number] for number in numbers]

    def prepare(self, rows: Int32 | Int64) -> None:
        """Have the chains of these rows at hand: climbed together, they take a quarter of the time of one by one."""
        asked = np.array([row for row in distinct(rows).tolist() if row not in self._known], np.int64)
        for first in range(0, len(asked), _TOGETHER):
            self._prepare(asked[first : first + _TOGETHER])

    def _prepare(self, asked: Int64) -> None:
        climbed = chains(asked, self._parent, self._deepest)
        codes = np.where(climbed == _NONE, _NONE, self._codes(climbed))
        called: defaultdict[bytes, list[int]] = defaultdict(list)
        for place, key in enumerate(rows_as_bytes(codes)):
            called[key].append(place)
        for key, places in called.items():
            numbers = np.frombuffer(key, codes.dtype)
            names = self._named(tuple(numbers[numbers != _NONE].tolist()))
            alike = climbed[places, len(numbers) - len(names.every) :]
            levels = alike.T.tolist()
            ops = zip(*compress(levels, names.is_op), strict=True) if names.ops else repeat(())
            self._known.update(zip(levels[-1], map(Path, zip(*levels, strict=True), ops, repeat(names)), strict=True))

    def _climbed(self, row: int) -> Path:
        parent, chain, at = self._parent.item, list[int](), row  # a tenth of what int(parent[at]) costs
        while at != _NONE and len(chain) < self._deepest:
            chain.append(at)
            at = parent(at)
        rows = tuple(chain[::-1])
        names = self._named(tuple(self._codes(np.array(rows)).tolist()))
        return Path(rows, tuple(compress(rows, names.is_op)), names)

    def _codes(self, rows: Int64) -> Int64:
        """For each of these rows a number of its name and category."""
        name, category = self._name[rows], self._category[rows]
        codes: Int64 = np.where(category == ANNOTATION, self._same[name], name)
        return codes * _KINDS + category

    def _named(self, codes: tuple[int, ...]) -> PathNames:
        known = self._names.get(codes)
        if known is None:
            every = tuple(self._strings[code // _KINDS] for code in codes)
            kinds = [code % _KINDS for code in codes]
            ops = tuple(name for name, kind in zip(every, kinds, strict=True) if kind == CPU_OP)
            known = self._names[codes] = PathNames(
                every=every,
                ops=ops,
                scopes=tuple(n for n, k in zip(every, kinds, strict=True) if k == ANNOTATION and not is_step(n)),
                is_op=tuple(kind == CPU_OP for kind in kinds),
                worker=next((at for at, op in enumerate(ops) if not is_wrapper(op)), _NONE),
            )
        return known


__all__ = ["NOWHERE", "Path", "PathNames", "Paths"]
