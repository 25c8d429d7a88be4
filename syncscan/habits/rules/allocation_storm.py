"""Memory that is taken from the driver in every step, instead of from the caching allocator.

## What it finds

Calls that take memory of the device, or pin it, in most of the steps behind the first, where no sync's finding counts
them.

## How it shows in the trace

`cudaMalloc`, `cuMemMap`, `cudaHostAlloc` and their like in step after step.

## Example

```python
for batch, target in torch.utils.data.DataLoader(samples, batch_size=16):
    train(batch.to(device), target.to(device))
    torch.cuda.empty_cache()
```

## Use instead

```python
for batch, target in torch.utils.data.DataLoader(samples, batch_size=16):
    train(batch.to(device), target.to(device))
```

## What it would save

The step is replayed without these calls.

## References

- https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf
- sample_traces/programs/stalls.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import distinct, median
from syncscan.model.finding import Confidence
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.names import is_loader
from syncscan.model.runtime_calls import allocates, api_name, frees, pins, unmaps
from syncscan.model.trace import Category
from syncscan.model.units import duration

ADVICE = Advice(
    rule="allocation-storm",
    area=Area.HOST,
    title="Memory is taken from the driver anew in every step",
    why=(
        "The caching allocator hands out memory in less than a µs; where it finds no block it asks the driver, which "
        "takes the host 20 to 500 µs a call."
    ),
    fix=(
        "No empty_cache() in the loop; few shapes (pad to some sizes); "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; buffers that are pinned once and used again."
    ),
    when_fine="In the first steps, and after each new largest shape: then the cache still grows.",
)
LEAST = 2
"""So many calls in a step are no straggler."""


def find(context: Context) -> Iterable[Habit]:
    """Calls that take memory of the device, or pin it, in most of the steps behind the first.

    What a sync's finding counts isn't counted again: calls that waited for the device, or that give memory back. Those
    that a finding only notes are.
    """
    rows = _calls(context)
    if not rows or not _steady(context, rows):
        return
    took = context.length_us(rows) * context.host_scale
    if took < context.notable_us:
        return
    given_back = [f for f in context.findings if any(_gives_back(context, o.sync.calls) for o in f.occurrences)]
    yield context.habit(
        ADVICE,
        rows,
        took,
        _evidence(context, rows, took, [f.id for f in given_back]),
        [Change(calls=tuple(rows))],
        Confidence.HIGH if given_back else Confidence.MEDIUM,
    )


def _calls(context: Context) -> list[int]:
    """Rows of the calls in question, in time order, on the threads that launch work."""
    s, trace = context.trace.slices, context.trace
    calling = (Category.RUNTIME, Category.DRIVER)
    rows = [row for category in calling for row in context.rows(category, _takes, main=False)]
    if not rows:
        return []
    counted = {c for f in context.findings if not f.diagnosis.intended for o in f.occurrences for c in o.sync.calls}
    launching = set(distinct(s.track[context.launch_calls]).tolist())
    rows = [row for row in rows if row not in counted and int(s.track[row]) in launching]
    return sorted((r for r in rows if not (pins(trace.name(r)) and _pins_a_batch(context, r))), key=lambda r: s.ts[r])


def _takes(name: str) -> bool:
    return allocates(name) and not unmaps(name)


def _pins_a_batch(context: Context, row: int) -> bool:
    """Whether `pin_memory` or a loader pins: another habit's, or the loader's own thread."""
    return context.op(row) in ("aten::pin_memory", "aten::_pin_memory") or any(map(is_loader, context.scope(row)))


def _gives_back(context: Context, calls: Sequence[int]) -> bool:
    return any(frees(context.trace.name(call)) or unmaps(context.trace.name(call)) for call in calls)


def _steady(context: Context, rows: Sequence[int]) -> bool:
    """Whether most of the steps behind the first recorded one make such calls; a single step proves nothing."""
    starts = np.sort(context.trace.slices.ts[list(rows)])
    counts = [int(np.subtract(*np.searchsorted(starts, [end, begin]))) for begin, end in context.steps]
    return len(counts) > 1 and median(counts[1:]) >= LEAST


def _evidence(context: Context, rows: Sequence[int], took: float, given_back: Sequence[str]) -> list[str]:
    names = Counter(api_name(context.trace.name(row)) for row in rows)
    calls = ", ".join(f"{name}: {count / context.count:.3g}" for name, count in names.most_common(3))
    said = [f"calls a step that ask the driver for memory: {calls}; they take {duration(took)} of the host"]
    if given_back:
        said.append(f"memory is given back in the steps, a sync of its own: {', '.join(given_back[:3])}")
    return said
