"""The backward of `x[mask]` turns the mask into indices once more, and reads their number back.

## What it finds

`IndexBackward0` of a forward `x[mask]`: a second wait for the same mask, on the autograd thread.

## How it shows in the trace

`autograd::engine::evaluate_function: IndexBackward0 > IndexBackward0 > aten::_index_put_impl_ > aten::nonzero` on the
autograd thread (`pt_autograd_0`), without Python frames: the line is that of the forward op.

## Example

```python
leaf = x.clone().requires_grad_()
leaf[mask].square().sum().backward()
result = leaf.grad
```

## Use instead

```python
leaf = x.clone().requires_grad_()
torch.where(mask, leaf, 0).square().sum().backward()
result = leaf.grad
```

## Versions

The autograd node is called `IndexBackward` before about torch 1.10 and `IndexBackward0` since.

## References

- https://docs.pytorch.org/docs/stable/notes/autograd.html
- tools/autograd/derivatives.yaml (index.Tensor)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "index-backward"
NAME = "The backward of x[mask] waits again"
CAUSE = Cause.SHAPE
WHY = """\
The gradient of `x[mask]` is written through the mask, which is turned into indices a second time: the autograd thread
waits for the number of indices, and launches nothing else of the backward pass meanwhile.

`_index_put_impl_` calls `nonzero` on the mask again.
"""
WHEN_FINE = """\
Whenever the forward `x[mask]` is acceptable.
"""


def match(call: Call) -> Match | None:
    """Match `aten::nonzero` below the backward node of an indexing op."""
    if not (call.backward.startswith(("IndexBackward", "IndexPutBackward")) and call.under("aten::nonzero")):
        return None
    return Match(
        title="the backward of x[mask] waits for the number of selected elements",
        fix="Change the forward: torch.where(mask, x, 0) or a weighted reduction has a backward without a wait.",
        removal=Removal.KERNELS,
    )
