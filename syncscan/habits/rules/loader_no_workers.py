"""A step that waits for a DataLoader without workers, so that the training process makes every batch itself.

## What it finds

Scopes of a loader without workers on the step's thread during which the device idles.

## How it shows in the trace

`enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__` between two steps' kernels.

## Example

```python
loader = torch.utils.data.DataLoader(samples, batch_size=16)
for batch, target in loader:
    train(batch.to(device), target.to(device))
```

## Use instead

Not run: it starts processes.

```python
workers = dict(num_workers=4, persistent_workers=True)
loader = torch.utils.data.DataLoader(samples, batch_size=16, pin_memory=True, **workers)
for batch, target in loader:
    train(batch.to(device, non_blocking=True), target.to(device, non_blocking=True))
```

## What it would save

The step is replayed with a quarter of the loader's time (shared by four workers), with nearly none and with half.

## References

- https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import NOTABLE, Context
from syncscan.habits.waiting_for_loader import waiting_for
from syncscan.model.habit import Advice, Area, Habit
from syncscan.model.slice_names import is_loader_without_workers

ADVICE = Advice(
    rule="loader-no-workers",
    area=Area.INPUT,
    title="The step waits for a DataLoader that has no workers",
    why="With num_workers=0 the training process makes each batch itself between two steps, while the device idles.",
    fix="Give the DataLoader workers: try num_workers=4 per GPU; pin_memory=True and persistent_workers=True too.",
    when_fine="When batches are made in much less time than a step takes, or the data is already on the device.",
)
WORKERS = 4
"""Number of workers that the likely gain assumes."""


def find(context: Context) -> Iterable[Habit]:
    """Return the habit if the device idles for long while the steps' thread is in a loader without workers."""
    return waiting_for(
        context,
        is_loader_without_workers,
        ADVICE,
        "the loader takes {ms} per step on the step's own thread",
        (1 / WORKERS, NOTABLE, 0.5),
    )
