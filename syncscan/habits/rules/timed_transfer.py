"""A timed interval that contains a copy of the input to the device.

## What it finds

A copy of the input to the device between the two events of a timed interval.

## How it shows in the trace

A copy to the device whose call lies between the two `cudaEventRecord` of a pair that `cudaEventElapsedTime` reads.

## Example

```python
import time

batch = torch.randn(16, 64)
begin = time.perf_counter()
result = model(batch.to(device))
took = time.perf_counter() - begin
```

## Use instead

```python
import time

batch = torch.randn(16, 64).to(device)
begin = time.perf_counter()
result = model(batch)
took = time.perf_counter() - begin
```

## What it would save

None per step: it distorts a measurement, so the copy's time is reported without a gain.

## References

- https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import Context
from syncscan.habits.event_timing import event_timings
from syncscan.habits.input_copies import pageable_copies, pinned_copies
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Habit
from syncscan.model.interval import Cover, Interval, union_of

ADVICE = Advice(
    rule="timed-transfer",
    area=Area.TIMING,
    title="The timed interval contains a copy of the input to the device",
    why="The time then includes the bus and the host as well as the model, and varies with both.",
    fix="Copy the input before the first event, or time it separately.",
    when_fine="When you want to measure the time from a request on the host to its result.",
)


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit for copies to the device between the two events of timed intervals."""
    timed = union_of([Interval(timing.begin, timing.end) for timing in context.kept(event_timings)])
    if not timed:
        return
    copies = [*context.kept(pageable_copies), *context.kept(pinned_copies)]
    begins, ends = (np.array(column, np.int64) for column in zip(*timed, strict=True))
    inside = Cover(begins, ends).holds(context.trace.slices.ts[[c.call for c in copies]])
    timed_copies = list(itertools.compress(copies, inside.tolist()))
    held = (
        context.length_us(c.call for c in timed_copies) + sum(c.waited_ns for c in timed_copies) / context.count / 1e3
    )
    took = max(held, context.length_us(c.row for c in timed_copies))
    if not timed_copies or took < context.notable_us:
        return
    size = sum(c.size for c in timed_copies) / context.count / 1e6
    yield context.habit(
        ADVICE,
        [c.call for c in timed_copies],
        None,
        [f"{size:.2f} MB per step are copied inside the timed interval: {duration(took)} of it"],
    )
