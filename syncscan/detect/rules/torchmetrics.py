"""torchmetrics counts and checks for NaN on the host.

## What it finds

Classification metrics, which count with `bincount` and exclude the class of `ignore_index`, and `MeanMetric`,
`SumMetric` and similar metrics, which check each value for NaN.

## How it shows in the trace

Frames of `torchmetrics/` around `aten::bincount`, `aten::unique` or `aten::is_nonzero`.

## Example

```python
result = torch.bincount(labels, minlength=8)  # torchmetrics' _bincount
```

## Use instead

Not run: this needs torchmetrics.

```python
result = torch.zeros(8, dtype=torch.long, device=device).scatter_add_(0, labels, torch.ones_like(labels))
```

## Versions

Checked in the source of torchmetrics 1.9, and measured.

## References

- https://lightning.ai/docs/torchmetrics/stable/
- torchmetrics/utilities/data.py (_bincount), torchmetrics/aggregation.py (_cast_and_nan_check_input)
- torchmetrics/functional/classification/confusion_matrix.py (_multiclass_confusion_matrix_format)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "torchmetrics"
NAME = "A metric counts on the host"
CAUSE = Cause.SHAPE
WHY = """\
`torch.bincount` reads the smallest and the largest value back, even if the number of classes is known.
"""
WHEN_FINE = """\
At the end of an epoch.

For checks of the inputs, see the rule metric-validation.
"""

_PLACES = (
    # 1.9, utilities/data.py, _bincount: torch.bincount unless torch.are_deterministic_algorithms_enabled()
    LibraryPlace(
        file="torchmetrics/utilities/data.py",
        functions=("_bincount",),
        title="a metric counts with bincount, which waits for the smallest and largest value",
        fix="No option avoids this: keep predictions and targets of some batches on the device and update once for all "
        "of them; or, inside torch.use_deterministic_algorithms(True), torchmetrics counts by comparison, without "
        "a wait but with more memory.",
    ),
    # 1.9, aggregation.py, _cast_and_nan_check_input: `torch.as_tensor(x, …, device=self.device)` of a Python number
    LibraryPlace(
        file="torchmetrics/aggregation.py",
        functions=("_cast_and_nan_check_input", "update"),
        direction="HtoD",
        title="an aggregating metric copies a Python number to the device",
        fix="Give update() a tensor that is on the device: metric.update(loss.detach()), torch.full((), value, "
        "device=metric.device) for a number; or leave a metric of host numbers on the CPU.",
        cause=Cause.PAGEABLE,
        removal=Removal.PINNED_COPY,
    ),
    # 1.9, aggregation.py, _cast_and_nan_check_input: `if nans.any() or nans_weight.any():`; with 'disable' it also
    # replaces the weights by ones
    LibraryPlace(
        file="torchmetrics/aggregation.py",
        functions=("_cast_and_nan_check_input",),
        title="an aggregating metric checks whether a value is NaN",
        fix="MeanMetric(nan_strategy='disable') doesn't check, and ignores the weights given to update() (1.9); or sum "
        "on the device (total += loss.detach()) and give the metric one value every N steps.",
        cause=Cause.CHECK,
    ),
    # 1.9, stat_scores.py, _multiclass_stat_scores_update, confusion_matrix.py and precision_recall_curve.py, _format:
    # `idx = target != ignore_index`, `preds[idx]`
    LibraryPlace(
        file="torchmetrics/functional/classification",
        functions=(
            "_multiclass_stat_scores_update",
            "_binary_confusion_matrix_format",
            "_multiclass_confusion_matrix_format",
            "_binary_precision_recall_curve_format",
            "_multiclass_precision_recall_curve_format",
        ),
        title="a metric counts the samples that ignore_index keeps",
        fix="Create the metric without ignore_index, with an extra class for the ignored samples: "
        "torch.where(target == ignored, num_classes, target); drop that class from the per-class results of "
        "compute() (average=None).",
    ),
)


def match(call: Call) -> Match | None:
    """Match a wait in one of the places of the table."""
    return match_at(call, _PLACES)
