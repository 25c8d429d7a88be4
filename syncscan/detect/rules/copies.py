"""Rules about copies between host and device."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import INDEX_ASSIGNMENTS, INDEXINGS, choice
from syncscan.model.finding import Confidence, Diagnosis, Removal, Use
from syncscan.model.runtime_calls import is_async_copy


def tolist(call: Call) -> Diagnosis | None:
    """Match the copy of `tolist`, by its C frame or by the ops before it."""
    if call.point.direction == "HtoD" or call.leaf != "aten::copy_":
        return None
    resolved = call.before[-2:] == ("aten::resolve_conj", "aten::resolve_neg") and not call.profiled
    return Diagnosis(removal=Removal.ASYNC_COPY) if resolved or call.place.called("tolist") else None


_SCALAR = 16


def scalar_assign(call: Call) -> Diagnosis | None:
    """Match a copy of one element to the device inside an assignment."""
    small = call.point.direction == "HtoD" and call.copies_at_most(_SCALAR) and not call.copies_at_most(0)
    if not small:
        return None
    through_index = call.under(*INDEX_ASSIGNMENTS) and call.copies_at_most(_SCALAR // 2)
    single = call.top == "aten::copy_" and call.before[-1:] in (("aten::select",), ("aten::slice",), ("aten::fill_",))
    if not (through_index or single):
        return None
    return Diagnosis(
        values={"assignment": "x[index] = number" if through_index else "x[i] = number"},
        removal=Removal.PINNED_COPY,
    )


_BETWEEN = (
    "aten::lift_fresh",
    "aten::to",
    "aten::empty",
    "aten::unsqueeze",
    "aten::select",
    "aten::slice",
)


_ON_THE_HOST = Diagnosis(removal=Removal.PINNED_COPY)
_COPIED = Diagnosis(variant="table", removal=Removal.PINNED_COPY)
_EITHER = Diagnosis(variant="either", removal=Removal.PINNED_COPY, confidence=Confidence.MEDIUM, copied=_COPIED)


def cpu_index(call: Call) -> Diagnosis | None:
    """Match a copy to the device inside an indexing op, or one that an indexing op follows at once."""
    if call.point.direction != "HtoD":
        return None
    if call.under(*INDEXINGS):
        return _ON_THE_HOST
    if not _follows(call):
        return None
    directly = call.after[0] in INDEXINGS  # a list as an index is lifted first
    if call.place.called("to", "cuda"):
        return _COPIED if directly else None
    return _EITHER if directly and not call.profiled else _ON_THE_HOST


def _follows(call: Call) -> bool:
    """Return whether an indexing op comes next, which after a constructor indexes its detached result."""
    return call.top == "aten::to" and call.nearest_after(lambda op: op not in _BETWEEN, 8) in INDEXINGS


_SMALL = 512
"""Bytes up to which the data are taken as constants, not as a batch: 64 numbers of 8 bytes."""
_CONSTRUCTORS = ("tensor", "as_tensor", "new_tensor", "asarray", "FloatTensor", "LongTensor", "scalar_tensor")


def tensor_constructor(call: Call) -> Diagnosis | None:
    """Match a copy to the device inside a constructor: by its C frame, or by what follows it."""
    if call.point.direction != "HtoD":
        return None
    lifted = "aten::lift_fresh" in call.after[:1] or call.after[:1] == ("aten::detach_",)
    if not (lifted or call.place.called(*_CONSTRUCTORS)):
        return None
    return Diagnosis(
        variant="small" if call.copies_at_most(_SMALL) else "",
        removal=Removal.PINNED_COPY,
    )


def to_device(call: Call) -> Diagnosis | None:
    """Match any blocking copy to the device without a more specific rule."""
    if call.point.direction != "HtoD":
        return None
    return Diagnosis(
        values={"memory": "pinned" if call.point.pinned else "pageable"},
        variant="pinned" if call.point.pinned else _what_is_copied(call),
        removal=Removal.ASYNC_COPY if call.point.pinned else Removal.PINNED_COPY,
    )


def _what_is_copied(call: Call) -> str:
    if call.copies_at_most(_SMALL):
        return "small"
    return "batch" if call.neighbours.loads else ""


def pageable_readback(call: Call) -> Diagnosis | None:
    """Match a copy to pageable memory that no synchronize follows."""
    alone = len(call.point.apis) == 1 and is_async_copy(call.point.api)
    if not (alone and call.point.direction == "DtoH" and not call.point.pinned):
        return None
    return Diagnosis(
        use=Use.UNKNOWN,
        removal=Removal.ASYNC_COPY,
    )


_COPIES = ("", "aten::to", "aten::_to_copy", "aten::copy_", "aten::clone")
_CPU = ("", "aten::to", "aten::_to_copy")


def cpu(call: Call) -> Diagnosis | None:
    """Match any copy of a tensor to the host without a more specific rule; unknown direction gives low confidence."""
    to_host = call.point.direction == "DtoH"
    if call.scalar or not (to_host or (not call.point.copy and call.leaf == "aten::copy_")):
        return None
    return Diagnosis(
        values={"call": _call(call)},
        variant="choice" if choice(call) else "",
        confidence=_confidence(call) if to_host else Confidence.LOW,
        removal=Removal.ASYNC_COPY,
    )


def _call(call: Call) -> str:
    """Return what the program called, as its author would write it."""
    if call.place.called("numpy"):
        return "numpy()"
    return ".cpu()" if call.top in _CPU else call.top.removeprefix("aten::")


def _confidence(call: Call) -> Confidence:
    return Confidence.HIGH if call.top in _COPIES else Confidence.MEDIUM
