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
result = total  # read it every N steps
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
from syncscan.detect.op_names import choice
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal

ID = "item"
NAME = "A number is read back"
CAUSE = Cause.READBACK
WHY = """\
The value is ready only after all queued work; the host can't launch anything meanwhile.
"""
WHEN_FINE = """\
When it runs once per epoch, or the host needs the value in this step.

Detach values that you keep, or the graph stays alive. Read a number that stays the same once, before the loop.
For several values: one `torch.stack(values).tolist()`.
"""


_NUMBER = (
    "If it is only logged or summed, keep it on the device (total += loss.detach()) and read it every N steps, "
    "several values with one torch.stack(values).tolist(). If the host branches on it, decide on the device with "
    "torch.where, or use the value of an earlier step."
)
_ELEMENT = (
    "Read the whole tensor once, before the loop (values = t.tolist()), and take values[k]; if the number is an "
    "index, index with the tensor itself: x.index_select(0, t[k].view(1))."
)
_CHOICE = (
    "If the host acts on it (an environment's step), act for many at once and read all choices with one tolist(); if "
    "it is only an index, keep it on the device: torch.gather or index_select."
)


def match(call: Call) -> Match | None:
    """Match any scalar read without a more specific rule."""
    if not call.scalar:
        return None
    inside = call.top if call.top not in ("aten::item", "aten::_local_scalar_dense") else ""
    expression = ".item()" if call.called("item") or not call.profiled else "float() or int()"
    what, fix = _read(call) if not inside else ("a number", _NUMBER)
    return Match(
        title=f"{inside.removeprefix('aten::') or expression} waits for {what}",
        fix=fix,
        confidence=Confidence.MEDIUM if inside else Confidence.HIGH,
        removal=Removal.NOTHING,
    )


def _read(call: Call) -> tuple[str, str]:
    """Return what the number is, and what to do instead of reading it."""
    if op := choice(call):
        return f"the result of {op}", _CHOICE
    if call.before[-1:] == ("aten::select",):
        return "one element of a tensor", _ELEMENT
    return "a number", _NUMBER
