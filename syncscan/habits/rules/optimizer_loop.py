"""An optimizer that launches kernels for one parameter after another.

## What it finds

Optimizer steps of many small kernels that aren't batched, in a step that is certainly bound by its launches.

## How it shows in the trace

The scope `Optimizer.step#…` with a handful of kernels per parameter, each of a few µs.

## Example

```python
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
result = train(x, labels)
```

## Use instead

```python
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
result = train(x, labels)
```

## What it would save

The step is replayed with a tenth of the optimizer's host time, with none of it and with four tenths.

## References

- https://docs.pytorch.org/docs/stable/optim.html#algorithms
- sample_traces/programs/tips.py, measured: 14.21 → 8.20 ms per step
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.looping_optimizer import find_looping_optimizer
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit

ADVICE = Advice(
    rule="optimizer-loop",
    area=Area.DEVICE,
    title="The optimizer launches small kernels for each parameter in turn",
    why="Each launch costs the host a few µs, however little it computes; the device waits for them.",
    fix="fused=True if the optimizer supports it, else foreach=True (the default on a GPU unless disabled).",
    when_fine="When parameters are few and large, or the step is device-bound anyway.",
)
STAY = (0.1, 0.0, 0.4)
"""Remaining part of its host time when fused: likely, with the most and with the least saved."""


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit for optimizer steps of many small kernels that aren't batched and certainly bound the step."""
    looping = context.kept(find_looping_optimizer)
    if looping is None:
        return
    yield context.habit(
        ADVICE,
        looping.steps,
        looping.took_us,
        [
            f"{looping.kernels:.0f} kernels per step of {duration(looping.mean_ns / 1e3)} on average",
            f"they take {duration(looping.took_us)} of the host ({looping.took_us / context.period_us:.0%} of the "
            "step)",
        ],
        [Change(host=tuple(context.interval(r, stay) for r in looping.steps)) for stay in STAY],
    )
