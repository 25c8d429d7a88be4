"""Rules about one number that the host reads."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.detect.call import Call
from syncscan.detect.op_names import choice, converts_to_a_number
from syncscan.model.finding import Confidence, Diagnosis, Use


def batch_norm_momentum(call: Call) -> Diagnosis | None:
    """Match a scalar read inside BatchNorm's forward, or between its counter and its op."""
    if not call.scalar or not (call.place.in_library("torch/nn/modules/batchnorm.py") or _counted(call)):
        return None
    return Diagnosis(use=Use.STEERS)


def _counted(call: Call) -> bool:
    """Return whether it reads what was counted up just before, and normalizes next."""
    counted = call.top == "aten::item" and call.before[-1:] == ("aten::add_",)
    return counted and any("batch_norm" in n for n in call.after[:3])


_CONSTRUCTORS = ("tensor", "as_tensor", "asarray", "new_tensor")


def tensor_of_tensors(call: Call) -> Diagnosis | None:
    """Match a scalar read inside the constructor of a tensor."""
    if not (call.top == "aten::item" or call.point.direction == "HtoD") or call.place.called("item"):
        return None
    reads = call.top == "aten::item" and (call.place.called(*_CONSTRUCTORS) or _fills(call))
    if not (reads or _copies(call)):
        return None
    return Diagnosis(confidence=Confidence.HIGH if call.profiled else Confidence.MEDIUM)


def _fills(call: Call) -> bool:
    """Return whether the number goes into memory that was made for it, and that becomes a tensor."""
    return call.last_before_but("aten::item") == "aten::empty" and _next(call)[:2] == ["aten::to", "aten::lift_fresh"]


def _copies(call: Call) -> bool:
    """Return whether what was made of a number goes to the device."""
    read = call.point.direction == "HtoD" and call.before[-1:] == ("aten::item",)
    return read and _next(call)[:1] == ["aten::lift_fresh"]


def _next(call: Call) -> list[str]:
    return [op for op in call.after[:16] if op != "aten::item"]


def contains(call: Call) -> Diagnosis | None:
    """Match `Tensor.__contains__`, by its frame or by the ops it leaves."""
    compared = call.top == "aten::item" and call.before[-2:] == ("aten::eq", "aten::any") and not call.place.has_frames
    return Diagnosis() if compared or call.place.in_library_function("__contains__") else None


_COMPARISONS = ("aten::gt", "aten::lt", "aten::ge", "aten::le", "aten::eq", "aten::ne", "aten::any", "aten::all")


_SELF = (
    "The same ops ran twice before the comparison, as in x != x, which checks for NaN: torch.isnan(x) on the device."
)


_TRANSFORMER = "torch/nn/modules/transformer.py"


def tensor_bool(call: Call) -> Diagnosis | None:
    """Match any truth value of a tensor without a more specific rule."""
    if not call.under("aten::is_nonzero"):
        return None
    if call.place.functions_in_library(_TRANSFORMER)[-1:] == ("_detect_is_causal_mask",):
        return Diagnosis(variant="mask", for_caller=True)
    comparison = call.before[-1] if call.before and call.before[-1] in _COMPARISONS else ""
    what = f" of {comparison.removeprefix('aten::')}" if comparison else ""
    return Diagnosis(values={"what": what}, seen=_SELF if comparison == "aten::ne" and _twice(call.before[:-1]) else "")


def _twice(ops: Sequence[str]) -> bool:
    """Return whether the last ops are a sequence said twice; a single one is, for `x.sum() != x.sum()`, two."""
    return any(len(ops) >= 2 * n and ops[-n:] == ops[-2 * n : -n] for n in range(1, 5))


_VIEWS = {
    "aten::slice": "the bound of x[:n]",
    "aten::select": "the index of x[i]",
    "aten::narrow": "the bound of narrow",
    "aten::index": "the flag of x[flag]",
}

_INDEX_OF_FLAG = ("aten::zeros", "aten::empty", "aten::ones")
"""The index that `x[flag]` makes of its flag, of length one or zero."""

_VIEW_AT_ONCE_NS = 10_000
"""A view begins 1.6 to 6.9 µs after the read of its bound; a slice of the next statement came after 11.1 µs.

(H200, torch 2.11, the zoo of ops without stacks; benchmarks/detect_thresholds.py.)
"""


def tensor_index(call: Call) -> Diagnosis | None:
    """Match a scalar read that a view follows, not by a call of `item()`."""
    first, second = (*call.after[:2], "", "")[:2]
    flagged = first in _INDEX_OF_FLAG and second == "aten::index"
    view = _VIEWS.get(second if flagged else first, "")
    named = not (call.profiled or call.dry) and call.before[-1:] == (
        "aten::select",
    )  # t[k].item(), and then whatever follows
    if not (view and converts_to_a_number(call) and not named and call.followed_within(_VIEW_AT_ONCE_NS)):
        return None
    return Diagnosis(
        values={"likely": "" if call.profiled else ", most likely", "view": view},
        confidence=Confidence.HIGH if call.profiled else Confidence.MEDIUM,
        use=Use.STEERS,
    )


_OPS = {
    f"aten::{op}"
    for op in "arange linspace logspace full full_like zeros ones empty rand randn randint eye range "
    "new_full new_zeros new_empty add add_ sub sub_ addmm addcmul addcdiv clamp clamp_ view "
    "reshape expand narrow repeat topk".split()
}

_SIZED = _OPS - {f"aten::{op}" for op in "add add_ sub sub_ addmm addcmul addcdiv clamp clamp_".split()}
"""Ops that take sizes: a number read directly before is most likely for them; arithmetic follows by chance."""

_OP_AT_ONCE_NS = 4_000
"""An op begins this soon after the read of its own argument, the next statement's op from 4.4 µs on.

0.9 to 3.2 µs for most, 5.3 for topk and 6.1 for expand, which are missed (H200, torch 2.11, the zoo of ops without
stacks; benchmarks/detect_thresholds.py).
"""


def number_argument(call: Call) -> Diagnosis | None:
    """Match a scalar read inside a factory or an op with a number as argument, or directly before one."""
    inside = next((op for op in call.ops if op in _OPS), "")
    sized = next((n for n in call.after[:1] if n in _SIZED), "")
    following = sized if sized and converts_to_a_number(call) and call.followed_within(_OP_AT_ONCE_NS) else ""
    op = inside or following
    if not (call.scalar and op):
        return None
    name = op.removeprefix("aten::")
    return Diagnosis(
        variant="" if inside else "following",
        values={"name": name},
        confidence=Confidence.HIGH if inside else Confidence.MEDIUM,
        use=Use.STEERS,
    )


def item(call: Call) -> Diagnosis | None:
    """Match any scalar read without a more specific rule."""
    if not call.scalar:
        return None
    inside = call.top if call.top not in ("aten::item", "aten::_local_scalar_dense") else ""
    expression = ".item()" if call.place.called("item") or not call.profiled else "float() or int()"
    what, variant = _read(call) if not inside else ("a number", "")
    return Diagnosis(
        values={"expression": inside.removeprefix("aten::") or expression, "what": what},
        variant=variant,
        confidence=Confidence.MEDIUM if inside else Confidence.HIGH,
    )


def _read(call: Call) -> tuple[str, str]:
    """Return what the number is, and which of the page's fixes it needs."""
    if op := choice(call):
        return f"the result of {op}", "choice"
    if call.before[-1:] == ("aten::select",):
        return "one element of a tensor", "element"
    return "a number", ""
