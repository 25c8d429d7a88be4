"""`GradScaler.step` reads back whether a gradient overflowed.

## What it finds

`torch.amp.GradScaler` with an optimizer that isn't fused.

## How it shows in the trace

`aten::item` after `aten::_amp_foreach_non_finite_check_and_unscale_` and before `Optimizer.step#…`; frames of
`torch/amp/grad_scaler.py`.

## Example

```python
parameter = x.clone().requires_grad_()
optimizer = torch.optim.SGD([parameter], lr=0.1)
scaler = torch.amp.GradScaler(device)
scaler.scale(parameter.square().mean()).backward()
scaler.step(optimizer)
scaler.update()
result = parameter.detach()
```

## Use instead

```python
parameter = x.clone().requires_grad_()
optimizer = torch.optim.SGD([parameter], lr=0.1, fused=True)
scaler = torch.amp.GradScaler(device)
scaler.scale(parameter.square().mean()).backward()
scaler.step(optimizer)
scaler.update()
result = parameter.detach()
```

## Versions

Fused Adam and AdamW take `found_inf` on the device since torch 2.0, fused SGD since about 2.3.

## References

- https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling
- torch/amp/grad_scaler.py (_maybe_opt_step)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.slice_names import is_optimizer_step

ID = "grad-scaler"
NAME = "GradScaler reads found_inf back"
CAUSE = Cause.CHECK
WHY = """\
The host decides whether to skip the optimizer step: it reads `found_inf` back after all gradients, so it waits for the
whole backward pass.
"""
WHEN_FINE = """\
When the optimizer has no fused form and float16 is needed.

With bfloat16 no scaler is needed at all. `unscale_`, `update` and `scale` don't wait; `get_scale()` does.
"""

_SCALERS = (
    "torch/amp/grad_scaler.py",
    "torch/cuda/amp/grad_scaler.py",
    "torch/distributed/fsdp/sharded_grad_scaler.py",
)
_UNSCALE = ("aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_non_finite_check_and_unscale_")


def match(call: Call) -> Match | None:
    """Match a read-back between unscaling and the optimizer's step, or inside the scaler's code."""
    if not (call.in_library(*_SCALERS) or _scaled(call)):
        return None
    return Match(
        title="GradScaler.step waits to check whether a gradient overflowed",
        fix="Use a fused optimizer (fused=True): it reads found_inf on the device. Or train in bfloat16 without a "
        "scaler.",
        removal=Removal.NOTHING,
    )


def _scaled(call: Call) -> bool:
    """Return whether a number is read between unscaling and the optimizer's step."""
    read = call.scalar and call.top == "aten::item" and any(n in call.before for n in _UNSCALE)
    return read and bool(call.nearest_after(_goes_on, 6))


def _goes_on(name: str) -> bool:
    return is_optimizer_step(name) or name == "aten::_amp_update_scale_"
