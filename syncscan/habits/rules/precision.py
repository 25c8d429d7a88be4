"""Find fp32 matrix products on a chip with tensor cores, and casts of tensors that autocast doesn't cache."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.facts.paths import innermost_that
from syncscan.habits.context import Context
from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.trace import NONE, Category, Vendor

FP32 = re.compile(r"sgemm|gemm_f32f32_f32f32_f32|gemmsn_|gemm_fp32|simt_s?gemm")
OTHER = re.compile(r"tf32|bf16|f16|half|tensorop|s1688|s16816|h1688|gemv")
PRODUCTS = frozenset(f"aten::{n}" for n in ("mm", "addmm", "bmm", "baddbmm", "_addmm_activation", "linear", "matmul"))
_TF32 = ""
"""The page's own fix."""
_BF16 = (
    'torch.autocast("cuda", torch.bfloat16) around forward and loss; tf32 gains little on this chip '
    '(torch.set_float32_matmul_precision("high")).'
)
_FP16 = (
    'torch.autocast("cuda", torch.float16) around forward and loss, with a GradScaler: this chip\'s tensor cores have '
    "neither tf32 nor bf16."
)
CHIPS = {
    (7, 0): (_FP16, (1 / 3, 1 / 8, 2 / 3)),
    (7, 2): (_FP16, (1 / 3, 1 / 8, 2 / 3)),
    (7, 5): (_FP16, (1 / 2, 1 / 8, 1.0)),
    (8, 0): (_TF32, (1 / 3, 1 / 8, 2 / 3)),
    (8, 6): (_BF16, (1 / 2, 1 / 4, 1.0)),
    (8, 7): (_BF16, (1 / 2, 1 / 4, 1.0)),
    (8, 9): (_BF16, (1 / 2, 1 / 4, 1.0)),
    (9, 0): (_TF32, (1 / 3, 1 / 8, 2 / 3)),
    (10, 0): (_TF32, (1 / 3, 1 / 8, 2 / 3)),
    (10, 3): (_TF32, (1 / 3, 1 / 8, 2 / 3)),
}
"""The fix and the remaining part of the products' time (likely, at most and at least) by compute capability.

From NVIDIA's data sheets (dense, relative to plain fp32): tf32 is 8 times as fast on an A100,
7 on an H100, but 1 to 2 times on the chips of 8.6 and 8.9, whose bf16 is 2 to 4 times as fast. Before 8.0 there is only
fp16, 8 times as fast on a V100 and a T4, 4 on a GeForce of 7.5. Products reached 3 to 8 times (measured, H200)."""
NO_TENSOR_CORES = re.compile(r"GTX 16|MX\d50|\bT(400|500|550|600|1000|1200)\b")
"""Chips of compute capability 7.5 without tensor cores."""


def fp32_matmul(context: Context) -> Iterable[Habit]:
    """Yield the habit if fp32 products take a notable part of the step on a chip with tensor cores."""
    tensor_cores = _tensor_cores(context)
    if tensor_cores is None:
        return
    fix, stays, named = tensor_cores
    s, trace = context.trace.slices, context.trace
    rows = trace.where(_in_fp32, Category.KERNEL)
    calls = context.trace.calls_of(rows)
    in_step = (calls != NONE) & context.inside(s.ts[calls])
    in_step[in_step] = _in_product(context, calls[in_step])
    call_of = dict(zip(rows[in_step].tolist(), calls[in_step].tolist(), strict=True))
    took = context.length_us(call_of)
    if took < 5 * context.notable_us:
        return
    longest = int(rows[in_step][s.dur[rows[in_step]].argmax()])
    habit = context.habit(
        "fp32-matmul",
        [call_of[longest], *(c for r, c in call_of.items() if r != longest)],
        took,
        [
            f"{len(call_of) / context.count:.0f} fp32 products per step take {duration(took)} of device time, "
            f"e.g. {trace.name(longest)[:70]}",
            f"{named} has tensor cores",
        ],
        [Change(work=tuple(zip(call_of, itertools.repeat(stay)))) for stay in stays],
    )
    yield replace(habit, fix=fix or habit.fix)


def _in_fp32(kernel: str) -> bool:
    folded = kernel.lower()  # a case-insensitive search takes three times as long
    return "gemm" in folded and not OTHER.search(folded) and FP32.search(folded) is not None


def _tensor_cores(context: Context) -> tuple[str, tuple[float, ...], str] | None:
    """Return the fix for the trace's device, what stays with it, and its name; None without tensor cores."""
    info = context.trace.info
    capability, name = info.compute_capability, next(iter(info.devices), "") or "the chip"
    if info.vendor is not Vendor.CUDA or capability is None or NO_TENSOR_CORES.search(name):
        return None
    chip = CHIPS.get(capability)
    return (*chip, f"{name} (compute capability {capability[0]}.{capability[1]})") if chip else None


def _in_product(context: Context, calls: Int64) -> Bool:
    trace = context.trace
    product = np.zeros(len(trace.slices), np.bool_)
    product[trace.where(PRODUCTS.__contains__, Category.CPU_OP)] = True
    inside: Bool = innermost_that(product, trace.slices.parent)[calls] != NONE
    return inside


_NODE = "ToCopyBackward0"
"""Autograd's node of a cast."""


def frozen_casts(context: Context) -> list[int]:
    """Return the `aten::to`s in the steps that cast tensors without gradients, in time order.

    Those are frozen weights, and everything in a pass without gradients; none if nothing runs under autocast.
    """
    casts = _casts(context)
    return sorted({*casts} - _recorded(context, casts), key=lambda row: int(context.trace.slices.ts[row]))


def _casts(context: Context) -> list[int]:
    """Return the `aten::to`s that launch something, in an op that contains itself."""
    s = context.trace.slices
    rows = np.array(context.rows(Category.CPU_OP, lambda name: name == "aten::to"), np.int64)
    rows = rows[s.parent[rows] != NONE]
    if not len(rows):
        return []
    ops, names = context.trace.rows_of(Category.CPU_OP)
    around = s.parent.take(ops)
    wrapped = np.zeros(len(s), np.bool_)
    wrapped[around[(around != NONE) & (names == s.name.take(around))]] = True
    rows = rows[wrapped[s.parent[rows]]]
    casts: list[int] = rows[context.launching(rows)].tolist()
    return casts


def _recorded(context: Context, casts: Sequence[int]) -> set[int]:
    """Return the casts with a node of autograd, by its sequence number; of several with one number, the last.

    An op has the number that the thread's next node will get, whether it creates one or not: the casts of a frozen part
    all have that of the first node after it.
    """
    s, trace = context.trace.slices, context.trace
    if not casts:
        return set()
    rows = np.flatnonzero(s.fwd_thread > 0)
    nodes = set(s.sequence[rows[trace.called(rows, lambda name: name == _NODE)]].tolist())
    last = dict(zip(s.sequence[casts].tolist(), casts, strict=True))
    return {row for number, row in last.items() if number != NONE and number in nodes}


LEAST_PART = 0.04
"""Least part of a step for casts to be reported: two equal steps differ by as much on average on an H200's host, and
where 72 casts took 2.4 % of a step, it took as long without them."""


def autocast_casts(context: Context) -> Iterable[Habit]:
    """Yield the habit for casts of tensors without gradient, which autocast doesn't cache.

    The lower bound keeps an op's first cast, which may be of its input.
    """
    rows = frozen_casts(context)
    if len(rows) < context.count:
        return
    host_us = context.length_us(rows) * context.host_scale
    work = [int(row) for cast in rows for row in context.launched(context.interval(cast))]
    device_us = context.length_us(distinct(work).tolist())
    if host_us + device_us < LEAST_PART * context.period_us:
        return
    _, firsts = np.unique(context.trace.slices.parent[rows], return_index=True)
    inputs = {rows[at] for at in firsts.tolist()}  # the first cast of an op may be of its input rather than a weight
    without_all, least = _without(context, rows), _without(context, [row for row in rows if row not in inputs])
    yield context.habit(
        "autocast-casts",
        rows,
        host_us + device_us,
        [
            f"{len(rows) / context.count:.0f} casts per step in {len(inputs) / context.count:.0f} ops cast "
            "tensors without gradients, which autocast doesn't cache",
            f"they take {duration(host_us)} of host time and {duration(device_us)} of device time",
        ],
        [without_all, replace(without_all, unstretched=True), least],
    )


def _without(context: Context, rows: Sequence[int]) -> Change:
    intervals = tuple(context.interval(row) for row in rows)
    work = tuple((int(row), 0.0) for interval in intervals for row in context.launched(interval))
    return Change(host=intervals, work=work)
