"""Timing code synchronizes in the step.

## What it finds

`torch.cuda.synchronize()` or `event.synchronize()` before `elapsed_time` or `time.perf_counter()`, `triton.testing`,
`torch.utils.benchmark`.

## How it shows in the trace

A synchronize without an op, with `cudaEventElapsedTime` (or, in traces before 2026, `INVALID` behind two
`cudaEventQuery`) directly after it, or with frames of timing code around it.

## Example

```python
if device == "cuda":
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
result = (x @ x).sum()
if device == "cuda":
    end.record()
    torch.cuda.synchronize()
    milliseconds = start.elapsed_time(end)
```

## Use instead

```python
if device == "cuda":
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
result = (x @ x).sum()
if device == "cuda":
    end.record()  # keep both; read elapsed_time after the loop
```

## Versions

All versions. `elapsed_time` itself never waits: it raises when an event isn't done.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html
- torch/cuda/streams.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.runtime_calls import is_elapsed_time, is_event_query, only_asks

ID = "timing"
NAME = "Timing code waits"
CAUSE = Cause.EXPLICIT
WHY = """\
The host waits for the device before it reads a clock, so the measurement changes the step that it measures.
"""
WHEN_FINE = """\
In a benchmark, where nothing else is measured.
"""

_TIMERS = ("triton/testing.py", "torch/utils/benchmark", "timeit.py")


def match(call: Call) -> Match | None:
    """Match an explicit synchronize whose next call reads the time between two events, or inside timing code."""
    if not call.facts.synchronizes or call.ops:
        return None
    following = [n for n in call.after[:4] if not only_asks(n)]
    queried = [is_event_query(n) for n in call.after[:2]] == [True, True] and following[:1] == ["INVALID"]
    if not (queried or any(map(is_elapsed_time, following[:1])) or _in_a_timer(call)):
        return None
    return Match(
        title=f"timing code waits in {call.facts.api}",
        fix="Record events in the loop and read elapsed_time after it: a recorded event costs the host next to "
        "nothing.",
        removal=Removal.NOTHING,
    )


def _in_a_timer(call: Call) -> bool:
    return call.in_frame(*_TIMERS) or call.in_function("do_bench", "blocked_autorange")
