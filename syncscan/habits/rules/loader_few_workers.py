"""A step that waits for a DataLoader whose workers can't keep up.

## What it finds

Scopes of a loader with workers on the step's thread during which the device idles: no batch is ready.

## How it shows in the trace

`enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__`, long, with no kernel running meanwhile.

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

The step is replayed with half of the wait, with none of it and with nine tenths, since the trace doesn't show how much
cheaper a sample can be.

## References

- https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.waiting_for_loader import waiting_for
from syncscan.model.habit import Advice, Area, Habit
from syncscan.model.slice_names import is_loader_with_workers

ADVICE = Advice(
    rule="loader-few-workers",
    area=Area.INPUT,
    title="The step waits for a DataLoader whose workers can't keep up",
    why="The loader has workers, but no batch is ready in time: they produce batches slower than steps consume them.",
    fix=(
        "More workers, up to the number of cores; then cheaper samples: decode smaller, cache, or augment on "
        "the device, in batches."
    ),
    when_fine="When only the start of an epoch waits; persistent_workers=True keeps workers from restarting.",
)


def find(context: Context) -> Iterable[Habit]:
    """Return the habit if the device idles for a notable time while the steps' thread is in a loader with workers."""
    return waiting_for(
        context, is_loader_with_workers, ADVICE, "the step waits {ms} for its next batch", (0.5, 0.0, 0.9)
    )
