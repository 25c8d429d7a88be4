"""Tensors that are built on the CPU and sent to the device in every step.

## What it finds

A factory op that computes on the CPU, right before a pageable copy of its result to the device, in every step.

## How it shows in the trace

`aten::rand` and the like without device work, then `aten::to` with a copy from pageable memory, on the same thread.

## Example

```python
noise = torch.rand(16, 64).to(device)
result = model(x + noise)
```

## Use instead

```python
noise = torch.rand(16, 64, device=device)
result = model(x + noise)
```

## What it would save

The step is replayed without building it on the host, and without the copy if the host doesn't wait for it; a copy that
waits is a sync, `to-device`, whose finding has its gain.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.rand.html
- sample_traces/programs/copies.py, measured: 151.75 → 17.69 ms per step
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.input_copies import copying, factories, pageable_copies
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit

ADVICE = Advice(
    rule="host-built-tensor",
    area=Area.INPUT,
    title="A tensor is built on the CPU and sent to the device in every step",
    why="The host fills it, then copies it from pageable memory; the device could fill it in microseconds.",
    fix="Create it where it is used: torch.rand(shape, device=device), or once before the loop if it never changes.",
    when_fine="When its content comes from the host anyway, or it must not depend on the device's random number "
    "generator.",
)


def find(context: Context) -> Iterable[Habit]:
    """Yield factory ops without device work that are followed by a pageable copy to the device in every step.

    A copy that the host waits for is a sync, whose finding states its cost; then only the factory counts here.
    """
    before = context.kept(factories)
    built = {c.call: (c, before[c.call]) for c in context.kept(pageable_copies) if c.call in before}
    for group in context.by_scope(built):
        built_copies = [built[call] for call in group]
        making = context.length_us(row for _, row in built_copies) * context.host_scale
        unsaid = [call for call in group if call not in context.sync_calls]
        sending = context.length_us(unsaid)
        if making + sending < context.notable_us or len(built_copies) < context.count:
            continue
        size = sum(c.size for c, _ in built_copies) / context.count
        effect = f"blocks the host for {duration(sending)}" if unsaid else "is a sync, listed as one"
        removed = [*(row for _, row in built_copies), *(copying(context, call) for call in unsaid)]
        yield context.habit(
            ADVICE,
            group,
            making + sending,
            [
                f"{context.trace.name(built_copies[0][1])} fills it on the host in {duration(making)} per step",
                f"copying its {size / 1e6:.1f} MB {effect}",
            ],
            [Change(host=tuple(context.interval(row) for row in removed))],
        )
