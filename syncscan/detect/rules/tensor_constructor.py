"""`torch.tensor(data, device='cuda')` copies its data to the device and waits.

## What it finds

`torch.tensor`, `new_tensor`, `as_tensor` and `from_numpy(…).to` of lists, numbers and NumPy arrays;
`torch.cuda.FloatTensor(list)`.

## How it shows in the trace

`aten::to > aten::_to_copy > aten::copy_` with `Memcpy HtoD (Pageable -> Device)`, followed by `aten::lift_fresh` and
`aten::detach_`.

## Example

```python
result = x * torch.tensor(0.5, device=device)
```

## Use instead

```python
result = x * torch.full((), 0.5, device=device)  # filled on the device; or just x * 0.5
```

## Versions

`aten::lift_fresh` since torch 1.12.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.full.html
- torch/csrc/utils/tensor_new.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.race import RaceKind

ID = "tensor-constructor"
NAME = "A constructor copies its data to the device"
CAUSE = Cause.PAGEABLE
RACE = RaceKind.WRITE_BEFORE_COPY
WHY = """\
The data is in pageable memory, and the constructor has no `non_blocking`: the host waits for all work queued before.
"""
WHEN_FINE = """\
Once, before the loop: `self.register_buffer(name, tensor, persistent=False)` keeps a module's constant on its device
and out of its state dict; `.half()` also casts it if it has fractions.

`torch.full`, `zeros` and `arange` with `device=` create their values on the device. Data from the host:
`torch.tensor(data).pin_memory().to(device, non_blocking=True)`.
"""

SMALL = 512
"""Bytes up to which the data are taken as constants, not as a batch: 64 numbers of 8 bytes."""
_SMALL = (
    "Create it once and keep it (a buffer), or create it on the device: torch.full, zeros, arange with device=…; plain "
    "Python numbers in arithmetic need no tensor. If the values are new in each step: pin_memory() and to(device, "
    "non_blocking=True), unchanged until the copy has run."
)
_LARGE = (
    "New data in each step (such as a replay buffer): torch.from_numpy(array).pin_memory().to(device, "
    "non_blocking=True), unchanged until the copy has run; or keep the buffer on the device, and index it there. "
    "The same data each time: create it once and keep it."
)
_CONSTRUCTORS = ("tensor", "as_tensor", "new_tensor", "asarray", "FloatTensor", "LongTensor", "scalar_tensor")


def match(call: Call) -> Match | None:
    """Match a copy to the device inside a constructor: by its C frame, or by what follows it."""
    if call.facts.direction != "HtoD":
        return None
    lifted = "aten::lift_fresh" in call.after[:1] or call.after[:1] == ("aten::detach_",)
    if not (lifted or call.called(*_CONSTRUCTORS)):
        return None
    return Match(
        title="a tensor constructor copies its data to the device synchronously",
        fix=_SMALL if call.copies_at_most(SMALL) else _LARGE,
        removal=Removal.PINNED_COPY,
    )
