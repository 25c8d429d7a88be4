"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

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
    return match_at(call, _PLACES)
