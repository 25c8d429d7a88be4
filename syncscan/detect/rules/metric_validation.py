"""A metric checks its inputs on the host at every update.

## What it finds

torchmetrics with `validate_args=True` (the default): unique labels, value ranges.

## Why it stalls

The checks call `unique` and truth values on the device tensors: several waits for each update of each metric.

## How it shows in the trace

Frames of `torchmetrics/` around `aten::_unique2` or `aten::is_nonzero`.

## Example

```python
from torchmetrics.functional.classification import multiclass_accuracy

result = multiclass_accuracy(labels, labels, num_classes=8)
```

## Use instead

```python
from torchmetrics.functional.classification import multiclass_accuracy

result = multiclass_accuracy(labels, labels, num_classes=8, validate_args=False)
```

## When it is fine

In tests, and for the first batches.

## Versions

Read in torchmetrics 1.9.

## References

- https://lightning.ai/docs/torchmetrics/stable/
- torchmetrics/functional/classification/stat_scores.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "metric-validation"
NAME = "A metric validates its inputs on the host"
CAUSE = Cause.CHECK


def match(call: Call) -> Diagnosis | None:
    """A wait inside torchmetrics' validation code."""
    if not (call.in_library("torchmetrics/") and call.in_library("_validation", "_check_", "_basic_")):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="a metric waits to validate its inputs",
        why="torchmetrics looks at the values of its inputs on the host at every update.",
        fix="Make the metric with validate_args=False, give num_classes, and call compute() once an epoch.",
        when_fine="In tests, and at the end of an epoch.",
        removal=Removal.NOTHING,
    )
