"""A timing loop that synchronizes after every repetition.

## What it finds

A timed interval in every step, followed by a synchronize after which the device idles.

## How it shows in the trace

`cudaEventRecord` twice, then a synchronize, then `cudaEventElapsedTime`, repeatedly on the same thread.

## Example

```python
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
times = []
for _ in range(100):
    begin.record()
    train(x, labels)
    end.record()
    torch.cuda.synchronize()
    times.append(begin.elapsed_time(end))
```

## Use instead

Not run: events need a GPU.

```python
pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(100)]
for begin, end in pairs:
    begin.record()
    train(x, labels)
    end.record()
torch.cuda.synchronize()
times = [begin.elapsed_time(end) for begin, end in pairs]
```

## What it would save

None in steps that aren't timed: it distorts a measurement. The cost of the wait itself is reported with the sync,
`timing`.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html
- https://docs.pytorch.org/docs/stable/benchmark_utils.html
"""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.event_timing import event_timings
from syncscan.model.duration import duration
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="timing-sync-in-loop",
    area=Area.TIMING,
    title="Every repetition is timed with its own synchronize",
    why=(
        "After the synchronize the device is idle, and the next repetition starts from nothing: the times include the "
        "launch of the first kernels, which a running loop hides."
    ),
    fix=(
        "Record an event before and after each repetition, let the host run ahead, synchronize once at the end, and "
        "read elapsed_time then. `torch.utils.benchmark.Timer` times calls."
    ),
    when_fine="When you want to measure the latency of a single request.",
)


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit if every step of several has a timed interval after which the device idles for a notable time.

    The gain without the wait is reported with the sync itself.
    """
    syncs = [timing.sync for timing in context.kept(event_timings)]
    idle = _idle_behind(context, syncs)
    if len(syncs) < max(2, context.count) or idle < context.notable_us:
        return
    yield context.habit(
        ADVICE,
        syncs,
        None,
        [
            f"{context.trace.name(syncs[0])} {len(syncs) / context.count:.0f} times per step; events are read after it",
            f"the device then idles for {duration(idle)} until the next repetition's first kernel",
        ],
    )


def _idle_behind(context: Context, syncs: list[int]) -> float:
    """Return the mean time from a synchronize to the next device work, in µs per step."""
    s, gaps = context.trace.slices, list[int]()
    starts = [context.work.of(d).busy_from for d in context.work.devices]
    for row in syncs:
        begin, end = s.ts.item(row), s.end.item(row)
        later = [b.item(int(b.searchsorted(begin, side="right"))) for b in starts if b[-1] > end]
        gaps += [min(later) - end] if later else []
    return max(0.0, sum(gaps) / max(1, len(gaps)) / 1e3)
