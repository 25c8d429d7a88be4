"""DDP reads its own timing events in some iterations, to log its statistics.

## What it finds

`DistributedDataParallel` in its first ten iterations and in every hundredth: it times forward, backward and
communication.

## How it shows in the trace

`cudaEventSynchronize` in pairs at the very start of the annotation `DistributedDataParallel.forward`, before any op,
each pair followed by `cudaEventElapsedTime`; a C frame `set_runtime_stats_and_log`.

## Example

```python
result = x.sum()  # DistributedDataParallel(model)(x), in its first iterations
```

## Use instead

Not run: DDP needs a process group.

```python
result = x.sum()  # the same, later
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
- torch/csrc/distributed/c10d/logger.cpp (set_runtime_stats_and_log)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use
from syncscan.model.runtime_calls import is_event_synchronize

ID = "ddp-statistics"
NAME = "DDP reads its timing events"
CAUSE = Cause.DIST
WHY = """\
In its first ten iterations and every hundredth DDP waits for the events of the previous iteration, which are usually
done unless the host runs far ahead.
"""
WHEN_FINE = """\
Always: DDP does it by itself, and rarely.

Record later iterations to see a typical step.
"""

_FORWARD = "DistributedDataParallel.forward"


def match(call: Call) -> Match | None:
    """Match an event synchronize before the first op of DDP's forward, or inside its statistics."""
    waits = is_event_synchronize(call.facts.api) and not call.ops
    opens = waits and call.directly_in_scope(_FORWARD) and not call.since_scope
    if not (opens or call.called("set_runtime_stats_and_log")):
        return None
    return Match(
        title="DDP reads its timing events for its statistics",
        fix="Leave it, and record later iterations: skip at least ten before the profiler's schedule starts.",
        intended=True,
        use=Use.SHOWN,
        removal=Removal.NOTHING,
    )
