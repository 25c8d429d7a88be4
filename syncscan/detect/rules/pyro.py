"""Pyro reads the loss back and validates on the host.

## What it finds

`SVI.step()`, which returns the loss as a number, and validation, which is on by default: of distributions, and of
values for NaN.

## How it shows in the trace

Frames of `pyro/` around `aten::item` or `aten::is_nonzero`.

## Example

```python
loss = x.square().mean()
result = loss.item()  # svi.step(data)
```

## Use instead

Not run: it takes Pyro.

```python
loss = x.square().mean()
result = loss.detach()  # loss = elbo.differentiable_loss(model, guide, data): a tensor; read it every some steps
```

## Versions

Read in Pyro 1.9.

## References

- https://docs.pyro.ai/en/stable/primitives.html#pyro.primitives.enable_validation
- pyro/infer/util.py (torch_item), pyro/util.py (torch_isnan, warn_if_nan)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "pyro"
NAME = "Pyro reads the loss back"
CAUSE = Cause.READBACK
WHY = """\
The loss of each step becomes a Python number, and validation asks for the truth of each constraint.
"""
WHEN_FINE = """\
While developing.

Without validation a wrong parameter gives NaN instead of an error.
"""

_PLACES = (
    # pyro/infer/util.py, torch_item: `x.item()`; trace_elbo.py: `loss += torch_item(…)` and warn_if_nan(loss)
    LibraryPlace(
        file="pyro/infer/util.py",
        functions=("torch_item",),
        title="SVI reads the loss as a number",
        fix="Train with a torch optimizer: loss = pyro.infer.Trace_ELBO().differentiable_loss(model, guide, …); "
        "loss.backward(); read loss every some steps. svi.step() reads it in each.",
        use=Use.SHOWN,
    ),
    # pyro/util.py, torch_isnan: `torch.isnan(x).any()`, asked by warn_if_nan
    LibraryPlace(
        file="pyro/util.py",
        functions=("torch_isnan", "torch_isinf", "warn_if_nan", "warn_if_inf"),
        title="Pyro asks whether the loss is NaN",
        fix="Train with a torch optimizer and pyro.infer.Trace_ELBO().differentiable_loss, and look at the loss every "
        "some steps; pyro.enable_validation(False) spares the other checks.",
        cause=Cause.CHECK,
        use=Use.SHOWN,
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table, or of a distribution that Pyro makes."""
    if call.in_library("pyro") and call.in_library("torch/distributions"):
        return Match(
            title="a distribution under Pyro waits to validate its arguments",
            fix="pyro.enable_validation(False) once the model works, or validate_args=False for one distribution: "
            "wrong parameters then give NaN instead of an error.",
            removal=Removal.NOTHING,
            cause=Cause.CHECK,
            for_caller=True,
        )
    return match_at(call, _PLACES)
