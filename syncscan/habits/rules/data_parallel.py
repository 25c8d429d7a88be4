"""DataParallel: one process copies the weights to every device and gathers the outputs in every step.

## What it finds

`torch.nn.DataParallel` over several devices.

## How it shows in the trace

The scope `DataParallel.forward` with `Broadcast`, `Scatter`, `Gather` and `ReduceAddCoalesced` inside.

## Example

```python
parallel = torch.nn.DataParallel(model)
for batch, target in torch.utils.data.DataLoader(samples, batch_size=16):
    F.cross_entropy(parallel(batch.to(device)), target.to(device)).backward()
    optimizer.step()
    optimizer.zero_grad()
```

## Use instead

Not run: it needs several GPUs.

```python
import os

torch.distributed.init_process_group("nccl")  # started by torchrun, one process per device
rank = int(os.environ["LOCAL_RANK"])
parallel = torch.nn.parallel.DistributedDataParallel(model.to(rank), device_ids=[rank])
for batch, target in torch.utils.data.DataLoader(samples, batch_size=16):
    F.cross_entropy(parallel(batch.to(rank)), target.to(rank)).backward()
    optimizer.step()
    optimizer.zero_grad()
```

## What it would save

The step is replayed without the transfers on host and devices; the upper bound also leaves out launches for the other
devices in forward. The collectives that replace the transfers aren't replayed.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html
- sample_traces/programs/data_parallel.py, measured: 6.30 → 3.67 ms per step
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.trace import Category

ADVICE = Advice(
    rule="data-parallel",
    area=Area.DEVICE,
    title="DataParallel sends the weights to every device in every step",
    why=(
        "One process scatters the batch, copies all weights to the other devices, launches for all of them under one "
        "GIL, gathers the outputs, and adds up the gradients on the first device."
    ),
    fix="DistributedDataParallel, one process per device: weights stay, gradients are averaged while backward runs.",
    when_fine="For a quick trial; torch itself advises against it for anything else.",
)
MOVING = re.compile(r"(Broadcast|Scatter|Gather|ReduceAddCoalesced)(Backward)?")


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit if `DataParallel.forward` moves weights, batch, outputs and gradients between several devices."""
    scopes = context.rows(Category.ANNOTATION, lambda n: n == "DataParallel.forward")
    if not scopes or len(context.work.devices) < 2:
        return
    moving = context.outermost(context.rows(Category.CPU_OP, MOVING.fullmatch, main=False))
    intervals = [context.interval(r) for r in moving]
    copied = [int(r) for st in intervals for r in context.launched(st, any_thread=True)]
    host, device = context.length_us(moving), context.length_us(copied)
    if max(host, device) < context.notable_us:
        return
    yield context.habit(
        ADVICE,
        scopes,
        max(host, device),
        [
            f"{len(moving) / context.count:.0f} transfers per step between {len(context.work.devices)} devices take "
            f"{duration(host)} of the host and {duration(device)} of the devices",
        ],
        _changes(context, scopes, intervals, copied),
    )


def _changes(context: Context, scopes: list[int], moving: list[ThreadInterval], copied: list[int]) -> list[Change]:
    """Return the step without transfers; at most also without the process's launches for other devices in forward."""
    removed = tuple((r, 0.0) for r in copied)
    forward = tuple(context.interval(r, 1 / len(context.work.devices)) for r in scopes)
    return [Change(host=tuple(moving), work=removed), Change(host=(*moving, *forward), work=removed)]
