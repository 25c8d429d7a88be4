"""`torch.distributions` checks its arguments on the host.

## What it finds

Constructing a distribution, `log_prob`, `cdf` and `sample` of `torch.distributions` with `validate_args` on, which is
the default.

## How it shows in the trace

Frames of `torch/distributions/`; without stacks `aten::_is_all_true` (or `aten::all`) directly before
`aten::is_nonzero > aten::item`.

## Example

```python
normal = torch.distributions.Normal(x, torch.ones_like(x))
result = normal.log_prob(x)
```

## Use instead

```python
normal = torch.distributions.Normal(x, torch.ones_like(x), validate_args=False)
result = normal.log_prob(x)
```

## Versions

On by default since torch 1.8. Newer versions call `_is_all_true`, older ones `all`.

## References

- https://docs.pytorch.org/docs/stable/distributions.html
- torch/distributions/distribution.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "distribution-args"
NAME = "A distribution checks its arguments on the host"
CAUSE = Cause.CHECK
WHY = """\
`torch.distributions` evaluates its constraints on the device and reads each result back: two waits for a `Normal`, one
more for a `log_prob`.
"""
WHEN_FINE = """\
While developing.

`torch.distributions.Distribution.set_default_validate_args(False)` turns all checks off, and so does `python -O`; wrong
parameters then give NaN instead of an error.
"""


def match(call: Call) -> Match | None:
    """Match a wait inside torch.distributions, or its way of asking whether all is valid."""
    all_true = call.top == "aten::is_nonzero" and call.before[-1:] == ("aten::_is_all_true",)
    if not (all_true or call.in_library("torch/distributions")):
        return None
    return Match(
        title="a distribution waits to validate its arguments",
        fix="Pass validate_args=False once the model works, or Distribution.set_default_validate_args(False): "
        "wrong parameters then give NaN instead of an error.",
        for_caller=True,
        removal=Removal.NOTHING,
    )
