"""A metric checks its inputs on the host at every update.

## What it finds

torchmetrics with `validate_args=True` (the default): unique labels, value ranges.

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

## Versions

Checked in the source of torchmetrics 1.9.

## References

- https://lightning.ai/docs/torchmetrics/stable/
- torchmetrics/functional/classification/stat_scores.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "metric-validation"
NAME = "A metric validates its inputs on the host"
CAUSE = Cause.CHECK
WHY = """\
torchmetrics checks the values of its inputs on the host at every update, with `unique` and truth values: several
waits per metric.
"""
WHEN_FINE = """\
In tests, for the first batches, and at the end of an epoch.
"""


_VALIDATES = ("_validation", "_check_", "_basic_")
"""Parts of the names of torchmetrics' functions that look at values: `_multiclass_stat_scores_tensor_validation`."""


def match(call: Call) -> Match | None:
    """Match a wait inside torchmetrics' validation code."""
    functions = call.functions_in_library("torchmetrics")
    if not any(part in function for function in functions for part in _VALIDATES):
        return None
    return Match(
        title="a metric waits to validate its inputs",
        fix="Create the metric with validate_args=False, pass num_classes, and call compute() once per epoch.",
        for_caller=True,
        removal=Removal.NOTHING,
    )
