"""Match a scalar read inside a factory or an op with a number as argument, or directly before one."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import converts_to_a_number
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal, Use

_OPS = {
    f"aten::{op}"
    for op in "arange linspace logspace full full_like zeros ones empty rand randn randint eye range "
    "new_full new_zeros new_empty add add_ sub sub_ addmm addcmul addcdiv clamp clamp_ view "
    "reshape expand narrow repeat topk".split()
}

_SIZED = _OPS - {f"aten::{op}" for op in "add add_ sub sub_ addmm addcmul addcdiv clamp clamp_".split()}
"""Ops that take sizes: a number read directly before is most likely for them; arithmetic follows by chance."""

_AT_ONCE_NS = 4_000
"""An op begins this soon after the read of its own argument, the next statement's op from 4.4 µs on.

0.9 to 3.2 µs for most, 5.3 for topk and 6.1 for expand, which are missed (H200, torch 2.11, the zoo of ops without
stacks; benchmarks/detect_thresholds.py).
"""


def match(call: Call) -> Match | None:
    inside = next((op for op in call.ops if op in _OPS), "")
    sized = next((n for n in call.after[:1] if n in _SIZED), "")
    following = sized if sized and converts_to_a_number(call) and call.followed_within(_AT_ONCE_NS) else ""
    op = inside or following
    if not (call.scalar and op):
        return None
    name = op.removeprefix("aten::")
    return Match(
        variant="" if inside else "following",
        values={"name": name},
        confidence=Confidence.HIGH if inside else Confidence.MEDIUM,
        use=Use.STEERS,
        removal=Removal.NOTHING,
    )
