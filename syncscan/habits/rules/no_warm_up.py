"""Steps that were recorded or timed without a warm-up.

## What it finds

A first recorded step at least three times as long as the median of the others, with more one-time calls than any.

## How it shows in the trace

`cudaMalloc`, `cuModuleLoadData`, `cudaStreamCreate` and the like in the first step, and hardly any in the others.

## Example

```python
import time

times = []
for _ in range(10):
    begin = time.perf_counter()
    train(x, labels)
    times.append(time.perf_counter() - begin)
mean = sum(times) / len(times)
```

## Use instead

```python
import time

for _ in range(10):
    train(x, labels)
times = []
for _ in range(10):
    begin = time.perf_counter()
    train(x, labels)
    times.append(time.perf_counter() - begin)
mean = sum(times) / len(times)
```

## What it would save

None per step: it distorts a measurement, and steps after the first don't have it.

## References

- https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.schedule, whose `warmup` is for this
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import median
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Habit
from syncscan.model.runtime_calls import comes_first
from syncscan.model.trace import Category

ADVICE = Advice(
    rule="no-warm-up",
    area=Area.TIMING,
    title="The first step is cold and is counted",
    why="The first calls load kernels, choose algorithms, create handles and allocate memory, once.",
    fix="Run some steps before the first that counts, until their time settles, and report their cost separately.",
    when_fine="When you want to measure the time to the first result.",
)
FACTOR, MORE = 3.0, 3


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit for a first step much longer than the others, with more one-time calls."""
    steps = context.trace.steps
    if len(steps) < 2:
        return
    lengths = np.array([step.end - step.ts for step in steps], np.float64)
    usual = median(lengths[1:])
    if usual <= 0 or lengths[0] < FACTOR * usual:  # steps of no length occur in damaged traces
        return
    s = context.trace.slices
    calling = (Category.RUNTIME, Category.DRIVER)
    rows = [row for category in calling for row in context.rows(category, comes_first, main=False)]
    starts = np.sort(s.ts[rows])
    calls = [int(np.subtract(*np.searchsorted(starts, [step.end, step.ts]))) for step in steps]
    if calls[0] < MORE * max(1, *calls[1:]):
        return
    yield context.habit(
        ADVICE,
        [],
        None,
        [
            f"the first step takes {duration(lengths[0] / 1e3)}, the others {duration(usual / 1e3)}",
            f"it makes {calls[0]} one-time calls (memory, kernels, handles), the others at most {max(calls[1:])}",
            f"the mean of all is {lengths.mean() / usual:.1f} times the others' median",
        ],
    )
