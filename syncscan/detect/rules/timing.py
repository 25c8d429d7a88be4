"""Timing code synchronises in the step.

## What it finds

`torch.cuda.synchronize()` or `event.synchronize()` before `elapsed_time` or `time.perf_counter()`, `triton.testing`,
`torch.utils.benchmark`.

## Why it stalls

To read a clock at the right moment the host waits for the device: the measurement changes what it measures.

## How it shows in the trace

A synchronise without an op, with `cudaEventElapsedTime` (or, in traces before 2026, `INVALID` behind two
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

## When it is fine

In a benchmark, where nothing else is measured.

## Versions

All versions. `elapsed_time` itself never waits: it raises when an event isn't done.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html
- torch/cuda/streams.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "timing"
NAME = "Timing code waits"
CAUSE = Cause.EXPLICIT

_QUERIES = ("cudaEventQuery", "hipEventQuery", "cudaStreamIsCapturing")
_TIMERS = ("triton/testing", "utils/benchmark", ": do_bench", ": perf_counter", ": blocked_autorange", "timeit.py")


def match(call: Call) -> Diagnosis | None:
    """An explicit synchronise whose next call reads the time between two events, or inside timing code."""
    if not call.synchronises or call.ops:
        return None
    following = [n for n in call.after[:4] if n not in _QUERIES]
    queried = call.after[:2] == ("cudaEventQuery", "cudaEventQuery") and following[:1] == ["INVALID"]
    if not (queried or any("EventElapsedTime" in n for n in following[:1]) or call.in_frame(*_TIMERS)):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title=f"timing code waits in {call.api}",
        why="To read a clock at the right moment the host waits for the device, so the measurement changes the step.",
        fix="Record events in the loop and read elapsed_time after it: a recorded event costs the host next to "
        "nothing.",
        when_fine="In a benchmark.",
        removal=Removal.NOTHING,
    )
