"""The program asks the device in a loop whether it is done: `while not event.query(): ...`.

## What it finds

Loops of `event.query()` or `stream.query()` that go on until the device is done, with or without a `time.sleep` in
them. The time from the first query to the last is one wait.

## How it shows in the trace

Three or more `cudaEventQuery` or `cudaStreamQuery` (on ROCm `hip…`) one after the other on a thread that launches
work, with nothing else between them and no op around them, until the event is reached or the stream is done.

## Example

```python
result = (x @ x).sum()
if device == "cuda":
    done = torch.cuda.Event()
    done.record()
    while not done.query():
        pass
```

## Use instead

Not recorded: how often it asks, and whether it must at all, is another matter on each machine.

```python
result = (x @ x).sum()
```

## Versions

Queries are recorded by all versions of torch; they raise no warning of torch's sync debug mode.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html
- https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__EVENT.html
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.runtime_calls import is_query

ID = "polling"
NAME = "Polling for an event or a stream"
CAUSE = Cause.EXPLICIT
WHY = """\
The program queries the device until it is done, and launches nothing meanwhile: it waits, with a busy core.

No single call blocks, so profilers and torch's sync debug mode see no wait. While Python polls, other threads
compete with it for the GIL.
"""
WHEN_FINE = """\
When other work is done between two queries, or on a thread that does nothing else.
"""


def match(call: Call) -> Match | None:
    """Match a loop of queries that ended when the device was done."""
    if not is_query(call.facts.api):
        return None
    what = "an event" if "Event" in call.facts.api else "a stream"
    return Match(
        title=f"{call.facts.api} in a loop: the program polls for {what}",
        fix="Keep launching, and query once, where the result is needed; event.synchronize() waits there without a "
        "loop. Between streams, wait_stream or wait_event: the device waits, not the host.",
        removal=Removal.NOTHING,
    )
