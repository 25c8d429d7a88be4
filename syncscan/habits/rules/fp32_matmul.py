"""Matrix products in fp32 arithmetic on a chip that has tensor cores."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Bool, Int64
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.trace import NONE, Category

ADVICE = Advice(
    rule="fp32-matmul",
    area=Area.DEVICE,
    title="Matrix products run in fp32 beside idle tensor cores",
    why="fp32 products use the chip's plain arithmetic units; its tensor cores do tf32 or bf16 many times faster.",
    fix=(
        'torch.set_float32_matmul_precision("high") for tf32 (Ampere and later), or torch.autocast("cuda", '
        "torch.bfloat16) around forward and loss."
    ),
    when_fine="When the products need all 24 bits: ill-conditioned solves, comparisons with a reference.",
)
FP32 = re.compile(r"sgemm|gemm_f32f32_f32f32_f32|gemmSN_|gemm_fp32|simt_s?gemm", re.IGNORECASE)
OTHER = re.compile(r"tf32|bf16|f16|half|tensorop|s1688|s16816|h1688|gemv", re.IGNORECASE)
PRODUCTS = frozenset(f"aten::{n}" for n in ("mm", "addmm", "bmm", "baddbmm", "_addmm_activation", "linear", "matmul"))
STAY = (1 / 3, 1 / 8, 2 / 3)
"""What is left of their time with tensor cores: likely, at most and at least saved (3 to 8 times faster is usual)."""


def find(context: Context) -> Iterable[Habit]:
    """fp32 kernels under matrix-product ops, for a notable part of the step, on a chip with tensor cores."""
    chip = _tensor_cores(context)
    if chip is None:
        return
    s, trace = context.trace.slices, context.trace
    wanted = trace.named(lambda n: FP32.search(n) and not OTHER.search(n)) & trace.is_category(Category.KERNEL)
    rows = np.flatnonzero(wanted)
    calls = context.trace.calls_of(rows)
    known = (calls != NONE) & context.inside(s.ts[calls])
    known[known] = _in_product(context, calls[known])
    mine = dict(zip(rows[known].tolist(), calls[known].tolist(), strict=True))
    took = context.length_us(mine)
    if took < 5 * context.notable_us:
        return
    longest = max(mine, key=lambda r: int(s.dur[r]))
    yield context.habit(
        ADVICE,
        [mine[longest], *(c for r, c in mine.items() if r != longest)],
        took,
        [
            f"{len(mine) / context.count:.0f} fp32 products a step take {took / 1e3:.2f} ms of the device, "
            f"e.g. {trace.name(longest)[:70]}",
            f"{chip} has tensor cores",
        ],
        [Change(work=tuple((r, stay) for r in mine)) for stay in STAY],
    )


def _tensor_cores(context: Context) -> str | None:
    """Name and compute capability of the trace's device if it has tensor cores for fp32 (tf32) or 16 bits."""
    listed = context.trace.info.metadata.get("deviceProperties")
    for device in listed if isinstance(listed, list) else []:
        major = device.get("computeMajor") if isinstance(device, dict) else None
        if isinstance(major, int) and major >= 7:
            return f"{device.get('name', 'the chip')} (compute capability {major}.{device.get('computeMinor', 0)})"
    return None


def _in_product(context: Context, calls: Int64) -> Bool:
    """Which of these calls lie in a product's op: all go up their chains of parents together."""
    trace, parent = context.trace, context.trace.slices.parent
    product = trace.named(PRODUCTS.__contains__) & trace.is_category(Category.CPU_OP)
    found = np.zeros(len(calls), dtype=np.bool_)
    at = parent[calls]
    while (at != NONE).any():
        found |= (at != NONE) & product[at]
        at = np.where(at != NONE, parent[at], NONE)
    return found
