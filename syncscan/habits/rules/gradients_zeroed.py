"""Gradients that are filled with zeros and then added to.

## What it finds

`zero_grad(set_to_none=False)` in every step, and the additions of the next backward pass to those zeros.

## How it shows in the trace

The scope `Optimizer.zero_grad#…` with work on the device, and one `aten::add_` per parameter in the first backward pass
after it.

## Example

```python
F.cross_entropy(model(x), labels).backward()
optimizer.step()
optimizer.zero_grad(set_to_none=False)
```

## Use instead

```python
F.cross_entropy(model(x), labels).backward()
optimizer.step()
optimizer.zero_grad()
```

## What it would save

The step is replayed without the zeros and the additions; the lower bound is without the zeros only, in case gradients
are views of buckets.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
- sample_traces/programs/stalls.py
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.zeroed_gradients import ZeroedGradients, zeroed_gradients
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit

ADVICE = Advice(
    rule="gradients-zeroed",
    area=Area.DEVICE,
    title="Gradients are filled with zeros, and backward adds to them",
    why=(
        "zero_grad(set_to_none=False) launches kernels that write zeros, and the next backward pass one more per "
        "parameter to add to them; a gradient of None is simply replaced."
    ),
    fix="optimizer.zero_grad(set_to_none=True), the default since torch 2.0.",
    when_fine="When something keeps the gradient tensors: a CUDA graph, a hook, buckets.",
)


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit if scopes of `Optimizer.zero_grad` launch work in every step.

    The additions to zeros go too, unless gradients are views of buckets, so the lower bound keeps them. Later passes of
    accumulated gradients add to real gradients and stay. Recording lengthens some ops more than others, so the upper
    bound is all of it as recorded (measured: 1.4 to 2.0 of a recorded 2.7 ms, H200, torch 2.11).
    """
    zeroed = context.kept(zeroed_gradients)
    if zeroed is None:
        return
    filling = _without(context, zeroed, additions=False)
    gain = _without(context, zeroed, additions=True)
    yield context.habit(
        ADVICE,
        zeroed.scopes,
        zeroed.host_us + zeroed.device_us,
        _evidence(context, zeroed),
        [gain, replace(gain, unstretched=True), filling] if zeroed.additions else [filling],
    )


def _without(context: Context, zeroed: ZeroedGradients, *, additions: bool) -> Change:
    rows = [*zeroed.scopes, *(zeroed.additions if additions else ())]
    work = [*zeroed.fills.tolist(), *(zeroed.sums.tolist() if additions else ())]
    return Change(host=tuple(context.interval(r) for r in rows), work=tuple((row, 0.0) for row in work))


def _evidence(context: Context, zeroed: ZeroedGradients) -> list[str]:
    fills, sums = len(zeroed.fills) / context.count, len(zeroed.sums) / context.count
    adding = f", the next backward pass {sums:.0f} that add to zeros" if zeroed.additions else ""
    return [
        f"zero_grad launches {fills:.0f} kernels per step{adding}: {duration(zeroed.host_us)} of host time, "
        f"{duration(zeroed.device_us)} of device time",
    ]
