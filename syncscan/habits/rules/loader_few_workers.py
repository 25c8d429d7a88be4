"""A step that waits for a DataLoader whose workers can't keep up.

## What it finds

Scopes of a loader with workers on the step's thread, while the device idles for a notable time: no batch is ready.

## How it shows in the trace

`enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__`, long, and no kernel beside it.

## Example

```python
loader = torch.utils.data.DataLoader(samples, batch_size=16, num_workers=1)
for batch, target in loader:
    train(batch.to(device), target.to(device))
```

## Use instead

Not run: it starts processes.

```python
import os

workers = len(os.sched_getaffinity(0))
loader = torch.utils.data.DataLoader(samples, batch_size=16, num_workers=workers, persistent_workers=True)
for batch, target in loader:
    train(batch.to(device), target.to(device))
```

## What it would save

The step is replayed with half of the wait, with none of it and with nine tenths: how much cheaper a sample can be
isn't in the trace.

## References

- https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.waiting_for_loader import waiting_for
from syncscan.model.habit import Advice, Area, Habit
from syncscan.model.names import is_loader_with_workers

ADVICE = Advice(
    rule="loader-few-workers",
    area=Area.INPUT,
    title="The step waits for a DataLoader whose workers can't keep up",
    why="The loader has workers, and still the step finds no batch ready: they make them slower than it takes them.",
    fix=(
        "More workers, as far as there are cores; then a cheaper sample: decode smaller, cache, or augment on "
        "the device, in batches."
    ),
    when_fine="When the wait is only at the begin of an epoch: persistent_workers=True keeps them from starting anew.",
)


def find(context: Context) -> Iterable[Habit]:
    """Scopes of a loader with workers on the steps' thread, during which the device idles for a notable time."""
    return waiting_for(
        context, is_loader_with_workers, ADVICE, "the step waits {ms} for its next batch", (0.5, 0.0, 0.9)
    )
