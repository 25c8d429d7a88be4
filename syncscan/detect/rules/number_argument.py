"""A device tensor is given where a Python number is needed.

## What it finds

`torch.arange(t)`, `torch.full((3,), t)`, `torch.linspace(0, t, 5)`, `x.add(y, alpha=t)`, `x.view(t, -1)`, `range(t)`,
`[0] * t`, `torch.clamp(x, max=t)` of old versions.

## How it shows in the trace

`aten::item` inside `aten::linspace`, `aten::arange`, `aten::full` …, or directly before such an op.

## Example

```python
n = labels.max()
result = torch.arange(n, device=device).sum()
```

## Use instead

```python
bound = 8  # known from the shape or the configuration
i = torch.arange(bound, device=device)
result = torch.where(i < labels.max(), i, 0).sum()
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.arange.html
- torch/csrc/utils/python_arg_parser.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import converts_to_a_number
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal, Use

ID = "number-argument"
NAME = "A tensor is used as a number"
CAUSE = Cause.READBACK
WHY = """\
The op needs a Python number; the argument parser converts the tensor, which reads it back from the
device.
"""
WHEN_FINE = """\
Outside of the loop.

Keep sizes as Python ints, and use the overloads that take tensors: `x * t` instead of `alpha=t`.
"""

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
    """Match a scalar read inside a factory or an op with a number as argument, or directly before one."""
    inside = next((op for op in call.ops if op in _OPS), "")
    sized = next((n for n in call.after[:1] if n in _SIZED), "")
    following = sized if sized and converts_to_a_number(call) and call.followed_within(_AT_ONCE_NS) else ""
    op = inside or following
    if not (call.scalar and op):
        return None
    name = op.removeprefix("aten::")
    return Match(
        title=f"{name} waits for a tensor that it uses as a number"
        if inside
        else f"a number is read back, most likely as an argument of {name}",
        fix="Keep sizes and bounds as Python ints from shapes or the configuration; for arithmetic use the "
        "overload that takes a tensor (x * t); for ranges compare with torch.arange of a fixed length.",
        confidence=Confidence.HIGH if inside else Confidence.MEDIUM,
        use=Use.STEERS,
        removal=Removal.NOTHING,
    )
