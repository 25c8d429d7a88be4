"""Batches that are pinned on the training thread right before they are copied.

## What it finds

`pin_memory` on the step's own thread, outside of a loader, for a notable time in every step.

## How it shows in the trace

`aten::pin_memory` or `aten::_pin_memory` on the thread of the steps, with `cudaHostAlloc` below it.

## Example

```python
for batch, target in torch.utils.data.DataLoader(samples, batch_size=16):
    train(batch.pin_memory().to(device, non_blocking=True), target.to(device))
```

## Use instead

Not run: pinning needs a GPU.

```python
for batch, target in torch.utils.data.DataLoader(samples, batch_size=16, pin_memory=True):
    train(batch.to(device, non_blocking=True), target.to(device, non_blocking=True))
```

## What it would save

The step is replayed without these ops on its thread.

## References

- https://docs.pytorch.org/docs/stable/data.html#memory-pinning
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.race import RaceKind
from syncscan.model.slice_names import is_loader
from syncscan.model.trace import Category

RACE = RaceKind.WRITE_BEFORE_COPY
ADVICE = Advice(
    rule="inline-pin",
    area=Area.INPUT,
    title="Batches are pinned on the training thread in every step",
    why="Pinning allocates page-locked memory, which is slow, and copies the batch into it; the step waits for it.",
    fix="Let the loader's own thread do it (pin_memory=True), or pin a buffer once and reuse it.",
    when_fine="Once, before the loop.",
)


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit if `pin_memory` takes a notable time on the steps' own thread, outside of a loader."""
    rows = context.outermost(context.rows(Category.CPU_OP, lambda n: n in ("aten::pin_memory", "aten::_pin_memory")))
    own = [r for r in rows if not any(map(is_loader, context.scope(r)))]
    for group in context.by_scope(own):
        took = context.length_us(group) * context.host_scale
        if took < context.notable_us or len(group) < context.count:
            continue
        yield context.habit(
            ADVICE,
            group,
            took,
            [f"pin_memory takes {duration(took)} per step on the thread that launches the work"],
            [Change(host=tuple(context.interval(r) for r in group))],
        )
