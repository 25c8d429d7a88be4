"""Batches that are copied to the device from pageable memory.

## What it finds

Copies to the device from pageable memory whose calls take notable time, unless the host waits for the device.

## How it shows in the trace

`cudaMemcpyAsync` with `Memcpy HtoD (Pageable -> Device)` as its work, and as long as the copy.

## Example

```python
batch = torch.randn(16, 64)
result = model(batch.to(device))
```

## Use instead

```python
batch = torch.randn(16, 64)
if device != "cpu":
    batch = batch.pin_memory()  # ahead of the step: a DataLoader does it with pin_memory=True
result = model(batch.to(device, non_blocking=True))
```

## What it would save

The step is replayed without the host's time in these copies.

## References

- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- sample_traces/programs/copies.py
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.input_copies import Copy, copying, factories, pageable_copies
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.race import RaceKind

RACE = RaceKind.WRITE_BEFORE_COPY
ADVICE = Advice(
    rule="pageable-input",
    area=Area.INPUT,
    title="Input is copied to the device from pageable memory",
    why=(
        "The driver stages a pageable copy through a pinned buffer of its own while the host waits; from pinned memory "
        "the device fetches it itself at full bus speed while the host continues."
    ),
    fix="pin_memory=True in the DataLoader (or .pin_memory() once, in advance), and .to(device, non_blocking=True); "
    "don't change a batch on the host until the copy has run.",
    when_fine="When it is copied once before the loop, or is small.",
)

SMALL = 100_000
"""Bytes per step below which staging a copy costs less than the call."""


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit if pageable copies take notable time in the steps, without those of tensors just built.

    A copy that the host waits for is a sync, whose finding states what a pinned copy would gain.
    """
    before = context.kept(factories)
    calls = [c for c in context.kept(pageable_copies) if c.call not in context.sync_calls and c.call not in before]
    for group in context.by_scope(c.call for c in calls):
        members = set(group)
        copies = [c for c in calls if c.call in members]
        held = context.length_us(group)
        size = sum(c.size for c in copies) / context.count
        if held < context.notable_us or size < SMALL:
            continue
        yield context.habit(
            ADVICE,
            group,
            held,
            [
                f"{len(copies) / context.count:.0f} copies per step, {size / 1e6:.1f} MB, "
                f"block the host for {duration(held)}",
                f"the bus runs at {_rate(copies):.1f} GB/s for them",
            ],
            [Change(host=tuple(context.interval(copying(context, c.call)) for c in copies))],
        )


def _rate(copies: list[Copy]) -> float:
    took = sum(c.device_ns for c in copies)
    return sum(c.size for c in copies) / took if took else 0.0
