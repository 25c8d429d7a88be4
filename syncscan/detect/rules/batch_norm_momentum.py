"""Batch normalisation with `momentum=None` reads its counter back.

## What it finds

`nn.BatchNorm*` with `momentum=None` in training mode.

## Why it stalls

The cumulative average divides by the number of batches, which is a buffer on the device and is read as a Python
number in each layer.

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

## When it is fine

When the cumulative average is wanted; then keep the count as a Python int of your own.

## Versions

Read in torch 2.6 and seen in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
- torch/nn/modules/batchnorm.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis

ID = "batch-norm-momentum"
NAME = "BatchNorm reads its counter back"
CAUSE = Cause.READBACK


def match(call: Call) -> Diagnosis | None:
    """A scalar read inside BatchNorm's forward, or between its counter and its op."""
    counted = call.top == "aten::item" and call.before[-1:] == ("aten::add_",)
    normalises = any("batch_norm" in n for n in call.after[:3])
    if not (call.scalar and (call.in_library("nn/modules/batchnorm.py") or (counted and normalises))):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="BatchNorm with momentum=None waits for its batch counter",
        why="The cumulative average divides by num_batches_tracked, a buffer on the device, as a Python number.",
        fix="Give a momentum (0.1), or count batches in a Python int.",
        when_fine="When a cumulative average is wanted.",
    )
