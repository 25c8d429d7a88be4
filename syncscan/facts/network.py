"""Finds what of a trace's steps a compile of the network can reach: its forward and backward passes, op by op.

A network's author compiles the network; the optimizer, and what is done with gradients between, stay as they are. A
recording without Python frames doesn't say which ops are the network's. So in a step with a backward pass, everything
right before one is taken to be forward, up to the last op that calls a library's kernel: what follows is its loss. What
backward begins with is the loss's own. In a step without a backward pass, everything is the network's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from syncscan.model.arrays import Int64, distinct
from syncscan.model.interval import Interval
from syncscan.model.runtime_calls import is_graph_launch
from syncscan.model.slice_names import is_backward, is_compiled_graph, is_compiled_region, is_gradient, is_optimizer
from syncscan.model.trace import CALLS, NONE, Category, Trace, once

PRODUCTS = (
    "aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::addbmm", "aten::addmv", "aten::mv", "aten::dot",
    "aten::_scaled_mm", "aten::_grouped_mm", "aten::cudnn_convolution", "aten::convolution", "aten::_convolution",
    "aten::convolution_backward", "aten::conv_depthwise", "aten::_conv_depthwise2d", "aten::miopen_convolution",
    "aten::slow_conv", "aten::_cudnn_attention", "aten::_flash_attention", "aten::_efficient_attention",
    "aten::_scaled_dot_product", "aten::_cudnn_rnn", "aten::_thnn_fused",
)  # fmt: skip
"""Beginnings of the names of ops that multiply matrices, convolve, attend, or are a recurrent layer."""
RECURRENT = "aten::_cudnn_rnn", "aten::miopen_rnn"
"""Beginnings of the names of ops that only recurrent layers call, forward and backward."""
LIBRARY = (
    *PRODUCTS, "aten::sort", "aten::topk", "aten::argsort", "aten::nonzero", "aten::masked_select", "aten::unique",
    "aten::_unique", "aten::bincount", "aten::fft", "aten::_fft", "aten::linalg", "aten::_linalg", "aten::cholesky",
    "aten::grid_sampler", "aten::searchsorted",
)  # fmt: skip
"""Beginnings of the names of ops whose kernels a compile calls as they are, instead of generating its own
(`torch/_inductor/lowering.py` and `kernel/`: extern kernels and fallbacks; `max-autotune` aside)."""
FOREACH = ("aten::_foreach", "aten::_fused_adam", "aten::_fused_sgd", "aten::_fused_adagrad", "aten::_amp_foreach")
"""Beginnings of the names of ops that only optimizers and their helpers call."""


class OutermostOp(msgspec.Struct, frozen=True):
    """An op that lies in no other, with the device work that its thread launches in it, rows in order of launch."""

    name: str
    """Empty of a call that launches outside of any op."""
    track: int
    begin: int
    end: int
    work: tuple[int, ...] = ()
    inner: tuple[str, ...] = ()
    """The name of the innermost op around each launch."""
    leaf: tuple[int, ...] = ()
    """The row of that op, for each launch."""
    gradients: int = 0
    """How many parameters' gradients it adds to."""
    of_optimizer: bool = False

    @property
    def backward(self) -> bool:
        return is_backward(self.name)

    @property
    def leaves(self) -> int:
        """How many innermost ops launch something."""
        return len({*self.leaf})

    @property
    def heavy(self) -> bool:
        """Whether any of its work is a library's kernel."""
        return any(is_library(name) for name in self.inner)


class Pass(msgspec.Struct, frozen=True):
    """The ops of one run of a network forward, or backward, in time order, without those of its loss."""

    backward: bool
    ops: tuple[OutermostOp, ...]

    @property
    def interval(self) -> Interval:
        return Interval(self.ops[0].begin, self.ops[-1].end)


def is_product(name: str) -> bool:
    """Return whether this op does what networks are made for, and little else is."""
    return name.startswith(PRODUCTS)


def is_recurrent(name: str) -> bool:
    """Return whether this op is a layer of `nn.RNN`, `nn.LSTM` or `nn.GRU`."""
    return name.startswith(RECURRENT)


def is_library(name: str) -> bool:
    """Return whether a compile calls this op's kernels as they are."""
    return name.startswith(LIBRARY)


@once
def is_compiled(trace: Trace) -> bool:
    """Return whether a part of the steps runs compiled already, by Dynamo's, Inductor's or a CUDA graph's own marks."""
    marks = trace.where(
        lambda name: is_compiled_region(name) or is_compiled_graph(name), Category.CPU_OP, Category.ANNOTATION
    )
    return bool(len(marks) or len(trace.where(is_graph_launch, *CALLS)))


@once
def passes(trace: Trace, step: Interval) -> list[Pass]:
    """Return the passes of a network in this step, forward ones and the backward behind each, in time order."""
    stretches = [list(ops) for _, ops in itertools.groupby(ops_of(trace, step), _kind)]
    trains = any(ops[0].backward for ops in stretches)
    chosen = []
    for ops, behind in itertools.zip_longest(stretches, stretches[1:]):
        forward = not ops[0].of_optimizer and not ops[0].backward
        if ops[0].backward or (forward and (not trains or (behind and behind[0].backward))):
            chosen.append(_pass(ops, trains))
    return [each for each in chosen if any(op.work for op in each.ops)]


def _kind(op: OutermostOp) -> int:
    return 2 if op.of_optimizer else int(op.backward)


def _pass(ops: Sequence[OutermostOp], trains: bool) -> Pass:
    """Return these ops as a pass, without the loss where there is a backward pass."""
    heavy = [at for at, op in enumerate(ops) if op.heavy]
    if not trains or not heavy:
        return Pass(ops[0].backward, tuple(ops))
    if ops[0].backward:
        return Pass(True, tuple(ops[heavy[0] :]))
    return Pass(False, tuple(ops[: heavy[-1] + 1]))


def _optimizers(trace: Trace, rows: Int64) -> list[tuple[int, int]]:
    """Return when an optimizer runs, of these rows; a scope around a backward pass is a trainer's closure, and none."""
    s = trace.slices
    scopes = rows[np.isin(rows, trace.where(is_optimizer, Category.ANNOTATION))]
    passes = np.sort(s.ts[trace.where(is_backward, Category.CPU_OP)])
    held = np.searchsorted(passes, s.end[scopes]) > np.searchsorted(passes, s.ts[scopes])
    return [(int(s.ts[row]), int(s.end[row])) for row in scopes[~held].tolist()]


@once
def ops_of(trace: Trace, step: Interval) -> list[OutermostOp]:
    """Return the ops of this step that lie in no other, on all launching threads, in time order."""
    s = trace.slices
    places = trace.launched_within(*step)
    rows, calls = trace.device_rows[places], trace.device_calls[places]
    rows, calls = rows[calls != NONE], calls[calls != NONE]
    order = np.argsort(s.ts[calls], kind="stable")
    rows, calls = rows[order], calls[order]
    ops = [op for track in distinct(s.track[calls]).tolist() for op in _on_track(trace, step, track, rows, calls)]
    return sorted(ops, key=lambda op: op.begin)


def _on_track(trace: Trace, step: Interval, track: int, rows: Int64, calls: Int64) -> Iterator[OutermostOp]:
    s = trace.slices
    on = trace.track_rows(track)
    first, behind = (on.start + int(at) for at in np.searchsorted(s.ts[on], step))
    slice_rows = np.arange(first, behind)
    ops = slice_rows[s.category[slice_rows] == int(Category.CPU_OP)]
    reached = np.maximum.accumulate(s.end[ops]) if len(ops) else ops
    outer = ops[np.append(True, s.ts[ops][1:] >= reached[:-1])] if len(ops) else ops
    gradients = np.sort(s.ts[ops[np.isin(ops, trace.where(is_gradient, Category.CPU_OP))]])
    optimizers = _optimizers(trace, slice_rows)
    here_too = s.track[calls] == track
    at, work, parents = s.ts[calls][here_too], rows[here_too], s.parent[calls[here_too]].tolist()
    inner = [trace.name(row) if row != NONE else "" for row in parents]
    bounds = np.searchsorted(at, np.stack([s.ts[outer], s.end[outer]])).T.tolist()
    alone = np.ones(len(at), np.bool_)
    for low, high in bounds:
        alone[low:high] = False
    added = np.diff(np.searchsorted(gradients, np.stack([s.ts[outer], s.end[outer]])), axis=0)[0].tolist()
    for row, (low, high), count in zip(outer.tolist(), bounds, added, strict=True):
        begin, name = int(s.ts[row]), trace.name(row)
        of_optimizer = name.startswith(FOREACH) or any(b <= begin < e for b, e in optimizers)
        launched = tuple(work[low:high].tolist())
        names, leaf = tuple(inner[low:high]), tuple(parents[low:high])
        yield OutermostOp(name, track, begin, int(s.end[row]), launched, names, leaf, count, of_optimizer)
    for row, call in zip(work[alone].tolist(), calls[here_too][alone].tolist(), strict=True):
        begin = int(s.ts[call])
        of_optimizer = any(b <= begin < e for b, e in optimizers)
        yield OutermostOp("", track, begin, int(s.end[call]), (row,), ("",), (call,), 0, of_optimizer)
