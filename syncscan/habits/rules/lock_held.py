"""Another Python thread that holds the interpreter's lock (GIL) while the step's thread waits for it.

## What it finds

A thread of the program that runs Python beside the step: a reporter, a parser, a thread that prepares batches.

## How it shows in the trace

Not as a slice: while capture samples the step's thread (`syncscan profile`), it reads how long that thread and other
Python threads were on a core. Time counts if the step's thread was off its core, not for lack of one and in code that
doesn't wait by itself, while another thread ran; without the part that chance explains, as for threads without the
lock.

## Example

```python
import threading

counting = threading.Thread(target=lambda: sum(len(str(k)) for k in range(100_000)))
counting.start()
for _ in range(3):
    train(x, labels)
counting.join()
```

## Use instead

```python
import subprocess
import sys

counting = subprocess.Popen([sys.executable, "-c", "sum(len(str(k)) for k in range(100_000))"])
for _ in range(3):
    train(x, labels)
counting.wait()
```

## What it would save

Likely the time that the thread was blocked, also in backward, where autograd's thread is blocked with it. At least half
of what was certainly the lock's; at most what was likely the lock's, and the uncertainty of its samples. Measured: 41
to 88 % of small steps beside one such thread.

## References

- https://docs.python.org/3/library/sys.html#sys.setswitchinterval
- benchmarks/host_stalls.py
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.sampled_work import LEAST_SAMPLES, SURELY, deviation, gained
from syncscan.habits.stopped_thread import Stopped, stopped_by_others
from syncscan.model.duration import duration
from syncscan.model.finding import Confidence
from syncscan.model.habit import Advice, Area, Habit, SampledTime
from syncscan.model.host import OtherThread, SampledHost

ADVICE = Advice(
    rule="lock-held",
    area=Area.HOST,
    title="Another thread holds the GIL, and the step waits for it",
    why=(
        "Only one thread runs Python at a time. Each torch op releases the GIL and reacquires it; a thread "
        "that took it meanwhile keeps it for up to 5 ms, and longer in a call that doesn't release it."
    ),
    fix=(
        "Do that work in another process (DataLoader workers, multiprocessing, a ProcessPoolExecutor), or "
        "rarely and in calls that release the GIL (torch, numpy, zlib). sys.setswitchinterval(5e-4) makes each "
        "wait ten times shorter if that thread runs plain Python."
    ),
    when_fine="When the device is busy meanwhile.",
)
NAMED = 2
"""Number of threads named in the evidence."""


def find(context: Context) -> Iterable[Habit]:
    """Yield the habit for time that the step's thread was off its core while another Python thread ran."""
    sampled = context.sampled
    stopped = stopped_by_others(sampled) if sampled else None
    if sampled is None or stopped is None or stopped.surely_us < context.notable_us:
        return
    samples = sampled.samples * stopped.surely_us / sampled.step_us
    if samples < LEAST_SAMPLES:
        return
    sure = deviation(samples)
    low, high = SURELY * (1 - sure) * stopped.surely_us, min((1 + sure) * stopped.likely_us, stopped.most_us)
    habit = context.habit(ADVICE, [], stopped.likely_us, _evidence(sampled, stopped), confidence=Confidence.MEDIUM)
    placed = SampledTime(_waits_for(sampled), stopped.by_phase)
    yield replace(habit, gain=gained(context, stopped.likely_us, low, high), per_step=1.0, sampled=placed)


def _evidence(sampled: SampledHost, stopped: Stopped) -> list[str]:
    ran = _running_beside(sampled)
    threads = [
        f"thread {other.name} ran for {duration(other.us)} per step, {other.beside_us / other.us:.0%} of it while the "
        f"step's thread was off-CPU{', in ' + other.places[0] if other.places else ''}"
        for other in ran[:NAMED]
    ]
    backward = stopped.likely_us - stopped.surely_us
    also = f", and for {duration(backward)} in backward" if backward else ""
    return [
        f"the step's thread was blocked for {duration(stopped.surely_us)} ({stopped.surely_us / sampled.step_us:.0%}"
        f" of the step) outside of its own waits{also}; it was off-CPU for "
        f"{duration(stopped.most_us)} in total",
        *threads,
    ]


def _running_beside(sampled: SampledHost) -> list[OtherThread]:
    """Return the threads that ran while the step's thread was off its core, longest first."""
    return sorted((o for o in sampled.others if o.beside_us), key=lambda other: -other.beside_us)


def _waits_for(sampled: SampledHost) -> str:
    """Return that the thread waits for the lock, and its likely holder: `held by THREAD: FUNCTION, FILE:LINE`."""
    holder = next(iter(_running_beside(sampled)), None)
    if holder is None:
        return "waits for the GIL"
    place, _, function = holder.places[0].partition(" ") if holder.places else ("", "", "")
    return f"waits for the GIL, held by {holder.name}" + (f": {function}, {place}" if place else "")
