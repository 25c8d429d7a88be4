"""torchmetrics counts, and looks for NaN, on the host.

## What it finds

Classification metrics, which count with `bincount`, and `MeanMetric`, `SumMetric` and their kin, which look for NaN
in each value.

## How it shows in the trace

Frames of `torchmetrics/` around `aten::bincount`, `aten::unique` or `aten::is_nonzero`.

## Example

```python
result = torch.bincount(labels, minlength=8)  # torchmetrics' _bincount
```

## Use instead

Not run: it takes torchmetrics.

```python
result = torch.zeros(8, dtype=torch.long, device=device).scatter_add_(0, labels, torch.ones_like(labels))
```

## Versions

Read in torchmetrics 1.

## References

- https://lightning.ai/docs/torchmetrics/stable/
- torchmetrics/utilities/data.py (_bincount), torchmetrics/aggregation.py (_cast_and_nan_check_input)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

ID = "torchmetrics"
NAME = "A metric counts on the host"
CAUSE = Cause.SHAPE
WHY = """\
`torch.bincount` reads the smallest and the largest value back, also where the number of classes is known.
"""
WHEN_FINE = """\
At the end of an epoch.

Checks of the inputs are another matter: the rule metric-validation.
"""

_PLACES = (
    # utilities/data.py, _bincount: torch.bincount unless torch.are_deterministic_algorithms_enabled()
    LibraryPlace(
        file="torchmetrics/utilities/data.py",
        functions=("_bincount",),
        title="a metric counts with bincount, which waits for its extremes",
        fix="No argument spares it: keep predictions and targets of some batches on the device and update once for all "
        "of them; or, inside torch.use_deterministic_algorithms(True), torchmetrics counts by comparison, without "
        "a wait but with more memory.",
    ),
    # aggregation.py, _cast_and_nan_check_input: `nans = torch.isnan(x)`, `if nans.any():`
    LibraryPlace(
        file="torchmetrics/aggregation.py",
        functions=("_cast_and_nan_check_input",),
        title="an aggregating metric asks whether a value is NaN",
        fix="MeanMetric(nan_strategy='disable') (newer torchmetrics) doesn't look; or sum on the device "
        "(total += loss.detach()) and give the metric one value every some steps.",
        cause=Cause.CHECK,
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
