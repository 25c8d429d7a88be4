"""Find what a compile leaves of the ops of a pass: which kernels go, and how long those take that stay.

Inductor calls libraries' kernels as they are, and generates its own for neighbors that only go through memory: a
kernel has room for one reduction, and a reduction over many rows takes two. What they take is bound by the memory that
they still read and write. Counted and timed in 11 programs (H100, torch 2.11: `benchmarks/joint`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec
import numpy as np

from syncscan.facts.network import OutermostOp, is_library
from syncscan.model.trace import NONE, Category, Trace

_ROWS = re.compile(r"softmax|layer_norm|cunn_|\bscan|LayerNorm|RMSNorm|rms_norm", re.IGNORECASE)
"""Kernels that reduce along rows: one kernel, with what lies around it."""
_SPLIT = re.compile(r"reduce_kernel|RowwiseMoments|batch_norm|bn_", re.IGNORECASE)
"""Kernels that reduce over much: two kernels in a row."""
_WEIGHTS = re.compile(r"GammaBeta|layer_norm.*weight", re.IGNORECASE)
"""Kernels that add up gradients of a norm's weight and bias over all rows: three kernels in a row."""
_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw", re.IGNORECASE)
"""Kernels of cuDNN that only change a layout; a compile keeps to one that needs none (`layout_optimization`)."""
_CASTS = ("aten::linear", "aten::conv", "aten::matmul", "aten::addmm", "aten::bmm", "aten::_convolution")
"""Ops for which autocast casts their weights: each weight is a kernel of its own."""
_WRITES = ("aten::index_copy_", "aten::index_put_", "aten::index_fill_", "aten::scatter_")
"""Ops that write at some indices of a tensor that they are given: each is a kernel of its own, and two where the tensor
is a view, since all that it is a view of is copied and written anew (functionalization; counted in torch 2.11 and 2.13:
one and 2.2 kernels more for each)."""
_VIEWS = ("aten::select", "aten::slice", "aten::narrow")
LEAST_NS = 1_400
"""No generated kernel took less (H100)."""


class Fusion(msgspec.Struct, frozen=True):
    """The launches of a piece as a compile leaves them."""

    library_ns: int
    """The time that the ops took of the host that call libraries, as recorded."""
    generated: int
    """Launches of generated kernels."""
    gone: tuple[int, ...]
    """Rows of device work that a compile does without."""
    stays: tuple[tuple[int, float, float], ...]
    """Rows of fused work, the least part of its length that can be left, and by how much of it more for each part that
    stays of all that is fused with it."""

    def work(self, stay: float) -> list[tuple[int, float]]:
        """Return the rows of device work that becomes shorter, each with the part left; fused work keeps `stay`."""
        left = ((row, min(max(least, stay * each), max(least, each))) for row, least, each in self.stays)
        return [*((row, 0.0) for row in self.gone), *left]


def fusion(trace: Trace, ops: Sequence[OutermostOp]) -> Fusion:
    library_ns, generated = 0, 0
    dropped_rows, stays = list[int](), list[tuple[int, float, float]]()
    for library, run in _runs(trace, ops):
        rows = [row for row, _, _ in run]
        names = [trace.name(row) for row in rows]
        if library:
            library_ns += sum(int(trace.slices.dur[leaf]) for leaf in {leaf for _, _, leaf in run} if leaf != NONE)
            dropped_rows += [row for row, name in zip(rows, names, strict=True) if _takes(name) == LAYOUT]
        else:
            takes = [max(0, _takes(name)) for name in names]
            kernels = sum(takes) + (0 in takes and max(takes) != 1)
            generated += kernels
            shorter, longest = _longest(trace, rows, kernels)
            dropped_rows += shorter
            stays += longest
    return Fusion(library_ns, generated + _casts(ops) + _writes(ops), tuple(dropped_rows), tuple(stays))


_Work: TypeAlias = tuple[int, str, int]
"""A row of device work, the name of the innermost op that launched it, and that op's row."""


def _runs(trace: Trace, ops: Sequence[OutermostOp]) -> Iterator[tuple[bool, list[_Work]]]:
    """Device work in order of launch, in runs of such that stays and such that is fused."""
    s = trace.slices
    works = (work for op in ops for work in zip(op.work, op.inner, op.leaf, strict=True))

    def stays(work: _Work) -> bool:
        row, name, _ = work
        to_host = int(s.category[row]) == int(Category.MEMCPY) and "DtoD" not in trace.name(row)
        return to_host or is_library(name)

    for kind, run in itertools.groupby(works, stays):
        yield kind, list(run)


LAYOUT = -1


@lru_cache(1 << 14)
def _takes(kernel: str) -> int:
    """Return how many kernels replace one of this name, besides those it is fused with; LAYOUT if it goes."""
    if _LAYOUT.search(kernel):
        return LAYOUT
    return 3 if _WEIGHTS.search(kernel) else 2 if _SPLIT.search(kernel) else 1 if _ROWS.search(kernel) else 0


def _casts(ops: Sequence[OutermostOp]) -> int:
    """Return how many casts of weights stay kernels of their own: for each heavy op all but the last, its input's."""
    copies = [sum(name == "aten::copy_" for name in op.inner) for op in ops if op.name.startswith(_CASTS)]
    return sum(max(0, count - 1) for count in copies)


def _writes(ops: Sequence[OutermostOp]) -> int:
    """Return how many more kernels the writes at indices take: one each, and two into views."""
    more, view = 0, False
    for op in ops:
        if op.name in _WRITES:
            more += 2 if view else 1
        view = op.name in _VIEWS or (view and not op.work)
    return more


def _longest(trace: Trace, rows: Sequence[int], kernels: int) -> tuple[list[int], list[tuple[int, float, float]]]:
    """Return the rows of a run that go, and the longest, which stay with what is left of all."""
    took = trace.slices.dur[np.array(rows, np.int64)].astype(np.float64)
    order = np.argsort(-took, kind="stable").tolist()
    longest, total = float(took[order[:kernels]].sum()), float(took.sum())
    if not longest:
        return [rows[at] for at in order[kernels:]], []
    least = min(LEAST_NS * kernels, total) / longest
    return [rows[at] for at in order[kernels:]], [(rows[at], least, total / longest) for at in order[:kernels]]
