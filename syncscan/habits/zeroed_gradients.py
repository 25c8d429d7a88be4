"""Find where optimizers fill gradients with zeros, and where backward then adds to those."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.habits.backward_passes import backward_passes
from syncscan.habits.context import Context
from syncscan.model.arrays import Int64, distinct
from syncscan.model.slice_names import is_optimizer_zero_grad
from syncscan.model.trace import Category


class ZeroedGradients(msgspec.Struct, frozen=True, kw_only=True):
    """The scopes that fill gradients with zeros, and the ops that add the first gradients to them."""

    scopes: list[int]
    """Rows of torch's scopes around `Optimizer.zero_grad`, in time order."""
    fills: Int64
    """Rows of the device work in them."""
    additions: list[int]
    """Rows of the `add_`s in the first backward pass after each."""
    sums: Int64
    """Rows of the device work of these `add_`s."""
    host_us: float
    """Host time of all of it, per step."""
    device_us: float
    """Device time of all of it, per step."""


def zeroed_gradients(context: Context) -> ZeroedGradients | None:
    """Return the zero fills if they occur in every step and take a notable time; else None."""
    rows = context.rows(Category.ANNOTATION, is_optimizer_zero_grad)
    listed = np.array(rows, np.int64)
    scopes: list[int] = listed[context.launching(listed)].tolist()
    if len(scopes) < context.count:
        return None
    additions = _additions(context, scopes)
    fills, sums = _work(context, scopes), _work(context, additions)
    host_us = context.length_us([*scopes, *additions]) * context.host_scale
    device_us = context.length_us([*fills.tolist(), *sums.tolist()])
    if host_us + device_us < context.notable_us:
        return None
    return ZeroedGradients(
        scopes=scopes, fills=fills, additions=additions, sums=sums, host_us=host_us, device_us=device_us
    )


def _work(context: Context, rows: list[int]) -> Int64:
    return np.concatenate([np.zeros(0, np.int64), *context.launched_by(rows)])


def _additions(context: Context, scopes: list[int]) -> list[int]:
    """Return the `add_`s that add a gradient to zeros: those of the first backward pass after each of these scopes."""
    s, trace = context.trace.slices, context.trace
    passes = context.kept(backward_passes)
    begins = np.array([s.ts[rows[0]] for rows in passes], np.int64)
    firsts = distinct(np.searchsorted(begins, s.end[scopes]))
    gradients = [passes[first] for first in firsts.tolist() if first < len(passes)]
    adds = trace.where(lambda name: name == "aten::add_", Category.CPU_OP)
    adds = adds[np.isin(s.parent[adds], np.concatenate([np.zeros(0, np.int64), *gradients]))]
    adds = adds[context.inside(s.ts[adds])]
    return [int(row) for row in adds[np.argsort(s.ts[adds], kind="stable")]]
