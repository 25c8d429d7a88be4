"""A Python loop outside of the optimizer that launches tiny kernels for one parameter after another.

## What it finds

A round of ops on single tensors, repeated in each step about once per parameter, outside of the optimizer.

## How it shows in the trace

The same few ops (`aten::mul_ aten::add_`, `aten::lerp_`, a norm, a clone) repeatedly, each with a kernel of a few µs.

## Example

```python
average = [p.detach().clone() for p in model.parameters()]
for a, p in zip(average, model.parameters()):
    a.lerp_(p.detach(), 0.01)
```

## Use instead

```python
average = [p.detach().clone() for p in model.parameters()]
torch._foreach_lerp_(average, [p.detach() for p in model.parameters()], 0.01)
```

## What it would save

The step is replayed with a tenth of the loop's host time, with none of it and with four tenths.

## References

- https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
- sample_traces/programs/stalls.py
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.parameter_loops import ParameterLoop, parameter_loops
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.interval import ThreadInterval

ADVICE = Advice(
    rule="parameter-loop",
    area=Area.DEVICE,
    title="A Python loop launches small kernels for each parameter in turn",
    why="Each launch costs the host a few µs, however little it computes; the device waits for them.",
    fix=(
        "One call over the list of all tensors: torch._foreach_lerp_, _foreach_mul_, _foreach_norm and the like; "
        "torch.optim.swa_utils.AveragedModel(…, multi_avg_fn=get_ema_multi_avg_fn()); clip_grad_norm_(foreach=True)."
    ),
    when_fine="When parameters are few and large, or the device is busy meanwhile.",
)
STAY = (0.1, 0.0, 0.4)
"""Remaining part of its host time when batched: likely, with the most and with the least saved. The most is as
recorded, since recording lengthens some ops more than others (measured: 1.2 to 1.5 of a recorded 2.4 ms, H200, torch
2.11)."""


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit for rounds of ops on single tensors that each step repeats about once per parameter."""
    for loop in context.kept(parameter_loops):
        yield context.habit(ADVICE, loop.first, loop.took_us, _evidence(context, loop), _changes(loop))


def _changes(loop: ParameterLoop) -> list[Change]:
    return [
        Change(host=tuple(_without(interval, stay) for interval in loop.intervals), unstretched=not stay)
        for stay in STAY
    ]


def _without(interval: ThreadInterval, stay: float) -> ThreadInterval:
    return interval._replace(begin=interval.begin + int(stay * (interval.end - interval.begin)))


def _evidence(context: Context, loop: ParameterLoop) -> list[str]:
    return [
        f"{' '.join(name.removeprefix('aten::') for name in loop.ops)}: {loop.rounds:.0f} rounds per step, "
        f"{loop.launches:.0f} kernels of {duration(loop.mean_ns / 1e3)} on average",
        f"they take {duration(loop.took_us)} of the host ({loop.took_us / context.period_us:.0%} of the step)",
    ]
