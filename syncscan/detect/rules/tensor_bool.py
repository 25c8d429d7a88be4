"""Match any truth value of a tensor without a more specific rule."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_COMPARISONS = ("aten::gt", "aten::lt", "aten::ge", "aten::le", "aten::eq", "aten::ne", "aten::any", "aten::all")


_SELF = (
    "The same ops ran twice before the comparison, as in x != x, which checks for NaN: torch.isnan(x) on the device."
)


_TRANSFORMER = "torch/nn/modules/transformer.py"


def match(call: Call) -> Match | None:
    if not call.under("aten::is_nonzero"):
        return None
    if call.functions_in_library(_TRANSFORMER)[-1:] == ("_detect_is_causal_mask",):
        return Match(variant="mask", removal=Removal.NOTHING, for_caller=True)
    comparison = call.before[-1] if call.before and call.before[-1] in _COMPARISONS else ""
    what = f" of {comparison.removeprefix('aten::')}" if comparison else ""
    return Match(
        values={"what": what},
        seen=_SELF if comparison == "aten::ne" and _twice(call.before[:-1]) else "",
        removal=Removal.NOTHING,
    )


def _twice(ops: Sequence[str]) -> bool:
    """Return whether the last ops are a sequence said twice; a single one is, for `x.sum() != x.sum()`, two."""
    return any(len(ops) >= 2 * n and ops[-n:] == ops[-2 * n : -n] for n in range(1, 5))
