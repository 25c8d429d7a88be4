"""Input copies on the stream of the training kernels, so that they can't overlap.

## What it finds

Pinned input copies on a stream that also runs kernels, in a device-bound step.

## How it shows in the trace

`Memcpy HtoD (Pinned -> Device)` on the kernels' stream, with no kernel running meanwhile.

## Example

```python
for batch, target in torch.utils.data.DataLoader(samples, batch_size=16, pin_memory=True):
    train(batch.to(device, non_blocking=True), target.to(device, non_blocking=True))
```

## Use instead

Not run: streams need a GPU.

```python
copying = torch.cuda.Stream()

def ahead(loader):
    following = None
    for batch, target in loader:
        with torch.cuda.stream(copying):
            made = batch.to(device, non_blocking=True), target.to(device, non_blocking=True)
        if following is not None:
            yield following
        following = made
    yield following

for batch, target in ahead(torch.utils.data.DataLoader(samples, batch_size=16, pin_memory=True)):
    torch.cuda.current_stream().wait_stream(copying)
    batch.record_stream(torch.cuda.current_stream())
    target.record_stream(torch.cuda.current_stream())
    train(batch, target)
```

## What it would save

The step is replayed with the copies hidden behind kernels; the range includes a step in which they aren't.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.record_stream.html
- sample_traces/programs/copies.py, measured: 5.58 → 2.87 ms per step
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.input_copies import pinned_copies
from syncscan.model.arrays import distinct
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Change, Habit

ADVICE = Advice(
    rule="copy-in-line",
    area=Area.STREAMS,
    title="Input copies and kernels take turns on one stream",
    why="A stream runs one thing at a time: the device computes nothing while the batch crosses the bus.",
    fix=(
        "Copy the next batch on a stream of its own while this one trains; call wait_stream before its first use and "
        "record_stream on its tensors."
    ),
    when_fine="When the copy is a small part of the step, or there is no memory for a second batch.",
)


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit if pinned copies on a stream with kernels take a notable part of a device-bound step."""
    s = context.trace.slices
    if context.step.device_busy_us < 0.75 * context.period_us:
        return
    work = context.trace.device_rows
    computes = ~context.trace.called(work, lambda n: n.startswith("Mem"))
    computing = set(distinct(s.stream[work[computes]]).tolist())
    in_line = [c for c in context.kept(pinned_copies) if int(s.stream[c.row]) in computing]
    if context.length_us(c.row for c in in_line) < 5 * context.notable_us:  # without overlap they take no longer
        return
    alone = sum(_alone(context, c.row) for c in in_line) / context.count / 1e3
    if alone < 5 * context.notable_us:
        return
    size = sum(c.size for c in in_line) / context.count
    yield context.habit(
        ADVICE,
        [c.call for c in in_line],
        alone,
        [
            f"{len(in_line) / context.count:.0f} copies per step, {size / 1e6:.1f} MB, take {duration(alone)} "
            f"while no kernel runs",
        ],
        [
            Change(work=tuple((c.row, 0.0) for c in in_line)),
            Change(),
            Change(work=tuple((c.row, 0.3) for c in in_line)),
        ],
    )


def _alone(context: Context, row: int) -> int:
    """Return how long nothing else ran on the device during this copy, in ns."""
    s = context.trace.slices
    begin, end = int(s.ts[row]), int(s.end[row])
    rest = [st for st in context.work.streams(int(s.device[row])) if st != int(s.stream[row])]
    beside = sum(context.work.of(int(s.device[row]), st).busy_within(begin, end) for st in rest)
    return max(0, end - begin - beside)
