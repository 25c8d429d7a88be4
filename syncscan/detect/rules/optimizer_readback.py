"""The optimizer reads values back in its step.

## What it finds

`Adafactor` and `ASGD`, a learning rate that is a device tensor, `step` counters that a checkpoint or a default device
moved to the device, `LBFGS`; and `ReduceLROnPlateau`, whose step is given the loss.

## How it shows in the trace

`aten::item` inside `Optimizer.step#…`. `aten::item` without a runtime call below it is a CPU tensor and no wait. Waits
in a closure, in which Lightning runs the whole training step, don't count as the optimizer's.

## Example

```python
parameter = x.clone().requires_grad_()
parameter.grad = torch.ones_like(x)
optimizer = torch.optim.SGD([parameter], lr=torch.tensor(0.1, device=device), foreach=False)
optimizer.step()
result = parameter.detach()
```

## Use instead

```python
parameter = x.clone().requires_grad_()
parameter.grad = torch.ones_like(x)
optimizer = torch.optim.SGD([parameter], lr=0.1, foreach=False)
optimizer.step()
result = parameter.detach()
```

## Versions

Adam's `step` is a CPU tensor since torch 1.12. A tensor `lr` is taken since about torch 2.1.

## References

- https://docs.pytorch.org/docs/stable/optim.html
- torch/optim/_adafactor.py, torch/optim/asgd.py, torch/optim/sgd.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal, Use
from syncscan.model.slice_names import is_optimizer_step

ID = "optimizer-readback"
NAME = "The optimizer reads values back"
CAUSE = Cause.READBACK
WHY = """\
A learning rate, counter or norm on the device is needed as a Python number, per parameter or group: many waits in one
`step()`.
"""
WHEN_FINE = """\
When the optimizer steps rarely.

`capturable=True` or `fused=True` keep counters and learning rate on the device; load checkpoints with `map_location` so
that `step` stays on the CPU.
"""

_BY_DESIGN = ("Adafactor", "ASGD", "LBFGS")
_FIX = (
    "Keep lr a Python float, or use capturable=True or fused=True; load checkpoints so that 'step' stays on the CPU. "
    "Adafactor, ASGD and LBFGS read by design."
)


_OF_SCHEDULER = Match(
    title="the learning-rate scheduler waits for the value that it is given",
    fix="Call ReduceLROnPlateau.step() once per epoch, with a mean that is read once (total += loss.detach()); in each "
    "step use a scheduler that needs no loss.",
    removal=Removal.NOTHING,
    use=Use.STEERS,
    for_caller=True,
)


def match(call: Call) -> Match | None:
    """Match a read-back inside an optimizer's step."""
    if call.facts.direction == "HtoD" or not reads_back(call):
        return None
    if call.decided_in("torch/optim/lr_scheduler.py") and call.deciding_function == "step":
        return _OF_SCHEDULER
    scope = call.scope_that(is_optimizer_step)
    if not (scope or call.in_library("torch/optim")) or (call.in_closure and not _in_its_own_code(call, scope)):
        return None
    name = scope.removeprefix("Optimizer.step#").removesuffix(".step") or "the optimizer"
    return Match(
        title=f"{name} reads values back in its step",
        fix=f"{name} reads by design: choose another optimizer, or step less often." if name in _BY_DESIGN else _FIX,
        confidence=Confidence.HIGH if call.has_frames or not call.in_closure else Confidence.MEDIUM,
        removal=Removal.NOTHING,
    )


def _in_its_own_code(call: Call, scope: str) -> bool:
    """Return whether a read beside a closure's is the optimizer's; without frames, only LBFGS, which reads the loss."""
    if call.has_frames:
        return call.decided_in("torch/optim")
    return "LBFGS" in scope
