"""Batch normalization with `momentum=None` reads its counter back.

## What it finds

`nn.BatchNorm*` with `momentum=None` in training mode.

## How it shows in the trace

`aten::add_`, `aten::item`, `aten::batch_norm`; a frame of `torch/nn/modules/batchnorm.py`.

## Example

```python
norm = torch.nn.BatchNorm1d(64, momentum=None, device=device)
result = norm(x)
```

## Use instead

```python
norm = torch.nn.BatchNorm1d(64, momentum=0.1, device=device)
result = norm(x)
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
- torch/nn/modules/batchnorm.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "batch-norm-momentum"
NAME = "BatchNorm reads its counter back"
CAUSE = Cause.READBACK
WHY = """\
The cumulative average divides by `num_batches_tracked`, a buffer on the device, which each layer reads as a Python
number.
"""
WHEN_FINE = """\
When you need the cumulative average; then keep the count in a Python int.
"""


def match(call: Call) -> Match | None:
    """Match a scalar read inside BatchNorm's forward, or between its counter and its op."""
    if not call.scalar or not (call.in_library("torch/nn/modules/batchnorm.py") or _counted(call)):
        return None
    return Match(
        title="BatchNorm with momentum=None waits for its batch counter",
        fix="Give a momentum (0.1), or count batches in a Python int.",
        use=Use.STEERS,
        removal=Removal.NOTHING,
    )


def _counted(call: Call) -> bool:
    """Return whether it reads what was counted up just before, and normalizes next."""
    counted = call.top == "aten::item" and call.before[-1:] == ("aten::add_",)
    return counted and any("batch_norm" in n for n in call.after[:3])
