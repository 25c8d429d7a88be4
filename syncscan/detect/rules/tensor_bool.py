"""Python asks a device tensor for its truth value.

## What it finds

`if t:`, `while t:`, `not t`, `assert t`, `a and b`, `bool(t)`, Python's `max`, `min`, `sorted` and `in [a, b]` over
tensors.

## How it shows in the trace

`aten::is_nonzero > aten::item`, without a C frame; a comparison op directly before tells what was asked.

## Example

```python
result = x * 2 if x.sum() > 0 else x
```

## Use instead

```python
result = torch.where(x.sum() > 0, x * 2, x)
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.where.html
- torch/csrc/autograd/python_variable_methods.cpp
"""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "tensor-bool"
NAME = "Control flow depends on a device value"
CAUSE = Cause.CTRL
WHY = """\
`if`, `while`, `not`, `and`, `assert` and `bool` need the value on the host before anything else can be launched.
"""
WHEN_FINE = """\
When the branch saves more work than the wait costs.

For assertions `torch._assert_async(t)` checks on the device, and ends the CUDA context when it fails. An update that
must be skipped can be multiplied by the condition instead.
"""

_COMPARISONS = ("aten::gt", "aten::lt", "aten::ge", "aten::le", "aten::eq", "aten::ne", "aten::any", "aten::all")


_SELF = (
    "The same ops ran twice before the comparison, as in x != x, which checks for NaN: torch.isnan(x) on the device."
)


_TRANSFORMER = "torch/nn/modules/transformer.py"
_MASK = "a transformer compares its mask with a causal one, and waits for the result"
_SAY = (
    "Declare the mask: encoder(x, mask=mask, is_causal=True), decoder(x, memory, tgt_mask=mask, "
    "tgt_is_causal=True) for a causal mask, is_causal=False for any other. Then it isn't compared."
)
"""`_detect_is_causal_mask` of nn.TransformerEncoder and nn.TransformerDecoder compares where `is_causal` is None."""


def match(call: Call) -> Match | None:
    """Match any truth value of a tensor without a more specific rule."""
    if not call.under("aten::is_nonzero"):
        return None
    if call.functions_in_library(_TRANSFORMER)[-1:] == ("_detect_is_causal_mask",):
        return Match(title=_MASK, fix=_SAY, removal=Removal.NOTHING, for_caller=True)
    comparison = call.before[-1] if call.before and call.before[-1] in _COMPARISONS else ""
    what = f" of {comparison.removeprefix('aten::')}" if comparison else ""
    return Match(
        title=f"control flow waits for the truth value{what} of a tensor",
        fix="For a check that raises, accumulate the results on the device (bad |= cond) and check once, after the "
        "loop or every N steps; for a choice of values torch.where(cond, a, b); multiply an update by the condition "
        "instead of skipping it; torch.maximum and torch.sort instead of Python's max and sorted.",
        seen=_SELF if comparison == "aten::ne" and _twice(call.before[:-1]) else "",
        removal=Removal.NOTHING,
    )


def _twice(ops: Sequence[str]) -> bool:
    """Return whether the last ops are a sequence said twice; a single one is, for `x.sum() != x.sum()`, two."""
    return any(len(ops) >= 2 * n and ops[-n:] == ops[-2 * n : -n] for n in range(1, 5))
