"""The backward of `prod` and `cumprod` counts zeros on the host.

## What it finds

`ProdBackward0` and `CumprodBackward0`.

## How it shows in the trace

`ProdBackward0 > … > aten::item` or `aten::nonzero`, `CumprodBackward0 > … > aten::any > aten::item`, on the autograd
thread.

## Example

```python
leaf = x.abs().add(1).requires_grad_()
leaf.prod(dim=1).log().sum().backward()
result = leaf.grad
```

## Use instead

```python
leaf = x.abs().add(1).requires_grad_()
leaf.log().sum().backward()
result = leaf.grad
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.cumprod.html
- torch/csrc/autograd/FunctionsManual.cpp (prod_backward), aten/src/ATen/native/ReduceOps.cpp (cumprod_backward)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "prod-backward"
NAME = "The backward of a product counts zeros"
CAUSE = Cause.READBACK
WHY = """\
The gradient of a product divides by its factors, which fails at zero: autograd counts the zeros on the device and reads
the count back to choose its formula.
"""
WHEN_FINE = """\
When factors may be zero or negative.

`exp(cumsum(log))` is right only for positive ones.
"""


def match(call: Call) -> Match | None:
    """Match anything below the backward of prod or cumprod."""
    if not call.backward.startswith(("ProdBackward", "CumprodBackward")):
        return None
    op, logarithms = ("cumprod", "cumsum") if call.backward.startswith("Cum") else ("prod", "sum")
    return Match(
        title=f"the backward of {op} waits for a count of zeros",
        fix=f"For positive factors compute {op} in logarithms: torch.exp(torch.{logarithms}(x.log(), dim)); its "
        "backward doesn't wait.",
        removal=Removal.KERNELS,
    )
