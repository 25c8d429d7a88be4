"""`.item()`, `float(t)` and `int(t)` wait for a number.

## What it finds

`t.item()`, `float(t)`, `int(t)`, `complex(t)`, `operator.index(t)`.

## How it shows in the trace

`aten::item > aten::_local_scalar_dense` over a copy of a few bytes and `cudaStreamSynchronize`. `aten::item` without
a runtime call below it is a CPU tensor: no wait, and no finding.

## Example

```python
total = 0.0
for row in x[:4]:
    total += row.sum().item()
result = total
```

## Use instead

```python
total = torch.zeros((), device=device)
for row in x[:4]:
    total += row.sum().detach()
result = total  # read it every some steps
```

## Versions

Copied into pinned memory since about torch 2.3, so that the wait shows in `cudaStreamSynchronize`; before, in
`cudaMemcpyAsync`.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.item.html
- aten/src/ATen/native/cuda/CUDAScalar.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal

ID = "item"
NAME = "A number is read back"
CAUSE = Cause.READBACK
WHY = """\
The number exists when all work queued before it is done; the host launches nothing until then.
"""
WHEN_FINE = """\
Once an epoch, or when the value steers the host in this very step.

Detach what you keep: else the graph stays alive. Several values: one `torch.stack(values).tolist()`.
"""


def match(call: Call) -> Match | None:
    """Any scalar read that no more special rule has taken."""
    if not call.scalar:
        return None
    inside = call.top if call.top not in ("aten::item", "aten::_local_scalar_dense") else ""
    own = ".item()" if call.called("item") or not call.profiled else "float() or int()"
    return Match(
        title=f"{inside.removeprefix('aten::') or own} waits for a number",
        fix="Keep it on the device: total += loss.detach(), read every some steps; several values with one "
        "torch.stack(values).tolist().",
        confidence=Confidence.MEDIUM if inside else Confidence.HIGH,
        removal=Removal.NOTHING,
    )
