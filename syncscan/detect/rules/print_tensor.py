"""Match a wait inside torch's formatting code, or, where no frames tell, in the burst of ops that it leaves."""

from __future__ import annotations

from itertools import takewhile

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_FORMATTER = ("aten::isfinite", "aten::ne", "aten::__and__")
_READ_ONE = frozenset(("aten::detach", "aten::item", "aten::resolve_conj", "aten::resolve_neg"))
_BURST = frozenset(
    f"aten::{op}"
    for op in "abs to min max unbind ceil ne is_nonzero div gt lt le ge eq detach item resolve_conj "
    "resolve_neg select slice alias view reshape lift_fresh masked_select any isinf isnan cat "
    "unsqueeze squeeze flatten numpy_T".split()
)


def match(call: Call) -> Match | None:
    if not (call.in_library("torch/_tensor_str.py") or (not call.has_frames and _in_burst(call))):
        return None
    return Match(
        removal=Removal.NOTHING,
        per_statement=True,
    )


def _of_integers(before: tuple[str, ...]) -> bool:
    """Return whether elements are being formatted one by one: all of a flattened tensor, each detached and read."""
    reads = list(takewhile(_READ_ONE.__contains__, reversed(before)))
    flattened = before[: len(before) - len(reads)][-2:]
    return bool(reads) and flattened == ("aten::reshape", "aten::unbind")


def _in_burst(call: Call) -> bool:
    """Return whether the ops since the formatter's first selection are the formatter's own."""
    if _READ_ONE.issuperset(call.before[-1:]) and _of_integers(call.before):
        return call.top in ("aten::item", "aten::to")
    if call.top == "aten::masked_select":
        return call.before[-3:] == _FORMATTER
    if "aten::masked_select" not in call.before:
        return False
    before = call.before
    selections = [at for at, op in enumerate(before) if op == "aten::masked_select" and before[:at][-3:] == _FORMATTER]
    return bool(selections) and _BURST.issuperset((*before[selections[-1] :], call.top))
