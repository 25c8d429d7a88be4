"""Printing a tensor on the device reads it back piece by piece.

## What it finds

`print(t)`, `str(t)`, `repr(t)`, `f'{t}'`, `logger.info(t)`, a debugger's display.

## How it shows in the trace

Frames of `torch/_tensor_str.py`; without stacks a burst: `aten::isfinite`, `aten::ne`, `aten::__and__`,
`aten::masked_select`, `aten::ceil`, several `aten::is_nonzero` and `aten::item`.

## Example

```python
result = str(x[0, :4])
```

## Use instead

Not compared: the text contains the device's name.

```python
result = str(x[0, :4].cpu())  # one copy instead of a dozen waits; better: print shapes
```

## Versions

Checked in traces of torch 2.11; the frames are the same in older versions.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.set_printoptions.html
- torch/_tensor_str.py
"""

from __future__ import annotations

from itertools import takewhile

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "print-tensor"
NAME = "Printing a tensor reads it back"
CAUSE = Cause.LOG
WHY = """\
To choose its number format torch reads the smallest, the largest and the finite values back one by one: a dozen waits
for one small tensor.
"""
WHEN_FINE = """\
While debugging.

In a loop print every N steps, and copy to the host first.
"""

_FORMATTER = ("aten::isfinite", "aten::ne", "aten::__and__")
_READ_ONE = frozenset(("aten::detach", "aten::item", "aten::resolve_conj", "aten::resolve_neg"))
_BURST = frozenset(
    f"aten::{op}"
    for op in "abs to min max unbind ceil ne is_nonzero div gt lt le ge eq detach item resolve_conj "
    "resolve_neg select slice alias view reshape lift_fresh masked_select any isinf isnan cat "
    "unsqueeze squeeze flatten numpy_T".split()
)


def match(call: Call) -> Match | None:
    """Match a wait inside torch's formatting code, or, where no frames tell, in the burst of ops that it leaves."""
    if not (call.in_library("torch/_tensor_str.py") or (not call.has_frames and _in_burst(call))):
        return None
    return Match(
        title="printing a tensor waits several times to choose its number format",
        fix="Don't print in the loop; otherwise print(t.detach().cpu()), which costs one copy, every N steps.",
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
