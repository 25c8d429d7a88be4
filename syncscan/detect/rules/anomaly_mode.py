"""Autograd's anomaly mode checks after every backward node whether its gradient contains NaN.

## What it finds

`torch.autograd.detect_anomaly()` and `set_detect_anomaly(True)`.

## How it shows in the trace

`autograd::engine::evaluate_function: … > aten::_is_any_true > … aten::item`, or `aten::item` after `aten::isnan` and
`aten::_is_any_true` directly below the engine.

## Example

```python
leaf = x.clone().requires_grad_()
with torch.autograd.detect_anomaly():
    leaf.square().sum().backward()
result = leaf.grad
```

## Use instead

```python
leaf = x.clone().requires_grad_()
leaf.square().sum().backward()
result = leaf.grad
```

## Versions

`_is_any_true` in torch 2.6 and later; `aten::any` before.

## References

- https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
- torch/csrc/autograd/engine.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.slice_names import is_engine

ID = "anomaly-mode"
NAME = "Anomaly mode checks every gradient"
CAUSE = Cause.CHECK
WHY = """\
`detect_anomaly` checks each gradient for NaN and reads the result back: one wait after each backward
node, so one for every forward op.
"""
WHEN_FINE = """\
Only while looking for the op that produces a NaN.
"""

_QUESTIONS = (("aten::isnan", "aten::_is_any_true"), ("aten::ne", "aten::any"), ("aten::isnan", "aten::any"))


def match(call: Call) -> Match | None:
    """Match a truth value read by the autograd engine itself, outside of the node, without a hook's Python frames."""
    engine = bool(call.ops) and is_engine(call.ops[0]) and not call.backward
    if not (call.scalar and engine) or call.has_python_frames:
        return None
    if call.before[-2:] not in _QUESTIONS and not call.under("aten::_is_any_true"):
        return None
    return Match(
        title="anomaly mode waits after every backward node",
        fix="Remove torch.autograd.detect_anomaly() or set_detect_anomaly(True) once the bug is found.",
        removal=Removal.NOTHING,
    )
