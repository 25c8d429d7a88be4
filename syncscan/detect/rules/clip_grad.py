"""`clip_grad_norm_(error_if_nonfinite=True)` checks on the host whether the norm is finite.

## What it finds

`torch.nn.utils.clip_grad_norm_` and `get_total_norm` with `error_if_nonfinite=True`.

## How it shows in the trace

`aten::isnan`, `aten::isinf`, `aten::logical_or`, then `aten::is_nonzero > aten::item`; frames of
`torch/nn/utils/clip_grad.py`.

## Example

```python
leaf = x.clone().requires_grad_()
leaf.square().sum().backward()
result = torch.nn.utils.clip_grad_norm_([leaf], 1.0, error_if_nonfinite=True)
```

## Use instead

```python
leaf = x.clone().requires_grad_()
leaf.square().sum().backward()
result = torch.nn.utils.clip_grad_norm_([leaf], 1.0)  # read the norm every N steps
```

## Versions

`error_if_nonfinite` is False by default in all versions.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html
- torch/nn/utils/clip_grad.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "clip-grad"
NAME = "Clipping checks whether the norm is finite"
CAUSE = Cause.CHECK
WHY = """\
With `error_if_nonfinite=True`, the host needs to know whether the norm is NaN or infinite, and the norm is ready
only after the whole backward pass.
"""
WHEN_FINE = """\
While looking for a NaN.

Without the flag clipping doesn't wait; a NaN norm makes all gradients NaN.
"""


def match(call: Call) -> Match | None:
    """Match a truth value of `isnan or isinf`, or one inside torch's clipping code."""
    truth_value = call.under("aten::is_nonzero") and call.before[-1:] == ("aten::logical_or",)
    nonfinite = truth_value and any(n in call.before[-6:] for n in ("aten::isinf", "aten::isnan"))
    if not (nonfinite or call.in_library("torch/nn/utils/clip_grad.py")):
        return None
    return Match(
        title="gradient clipping waits to check whether the norm is finite",
        fix="Leave error_if_nonfinite at False (clipping then doesn't wait) and look at the norm every N steps.",
        removal=Removal.NOTHING,
    )
