"""Comparing tensors with a tolerance reads the result back to the host.

## What it finds

`torch.allclose`, `torch.testing.assert_close`, `numpy`-like assertions on device tensors.

## How it shows in the trace

`aten::allclose > … > aten::item`; for `assert_close` `aten::isclose`, `aten::all`, then `aten::is_nonzero >
aten::item`.

## Example

```python
result = torch.allclose(x, x + 1e-9)
```

## Use instead

```python
result = torch.isclose(x, x + 1e-9).all()  # a tensor: read it later, or torch._assert_async(result)
```

## Versions

`aten::allclose` reads with `item()` in all versions.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.isclose.html
- aten/src/ATen/native/TensorCompare.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "allclose"
NAME = "A comparison with tolerance is read back"
CAUSE = Cause.CHECK
WHY = """\
`allclose` and `assert_close` return a Python bool, so the host waits for the result.
"""
WHEN_FINE = """\
In tests.

In a training loop check every N steps; `torch._assert_async` raises on the device and ends the CUDA context.
"""


def match(call: Call) -> Match | None:
    """Match `aten::allclose`, torch.testing, or a truth value of `isclose`."""
    compared = any(name in call.before[-3:] for name in ("aten::isclose", "aten::allclose"))
    if not (
        (call.under("aten::is_nonzero") and compared)
        or call.under("aten::allclose")
        or call.in_library("torch/testing/_comparison.py", "torch/testing/_asserts.py")
    ):
        return None
    return Match(
        title="a comparison with tolerance waits for its result",
        fix="Keep it on the device: torch.isclose(a, b).all(), read every N steps; or move the check into a test.",
        removal=Removal.KERNELS,
    )
