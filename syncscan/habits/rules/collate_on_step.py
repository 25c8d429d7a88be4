"""Batches that the step's thread collates.

## What it finds

Collate functions, with everything they call, on the step's thread and outside of a DataLoader.

## How it shows in the trace

Not as a slice: capture samples the step's thread without the profiler (`syncscan profile`), and each sample counts for
the outermost function of this kind. Work of a DataLoader is a habit of its own.

## Example

```python
from torch.utils.data import default_collate

for first in range(0, 64, 16):
    batch, target = default_collate(samples[first : first + 16])
    train(batch.to(device), target.to(device))
```

## Use instead

Not run: it starts processes.

```python
for batch, target in torch.utils.data.DataLoader(samples, batch_size=16, num_workers=2):
    train(batch.to(device), target.to(device))
```

## What it would save

At most its sampled time; in a host-bound step, at least half of that.

## References

- https://docs.pytorch.org/docs/stable/data.html#working-with-collate-fn
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import WorkKind, sampled_habit
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="collate-on-step",
    area=Area.INPUT,
    title="The step's thread collates batches",
    why="A collate function stacks and pads samples one by one, and launches nothing meanwhile.",
    fix="Pass it to a DataLoader with workers (collate_fn=, num_workers=), which run ahead of the step.",
    when_fine="When the device is busy meanwhile.",
)


def find(context: Context) -> Iterable[Habit]:
    """Return the habit for collate functions and everything they call outside of a DataLoader, by samples."""
    return sampled_habit(context, ADVICE, WorkKind.COLLATING)
