"""DeepSpeed times its steps and looks for overflow on the host.

## What it finds

The throughput timer, which synchronises at both ends of each step, the breakdown of wall clock, and the test for
overflow in fp16.

## How it shows in the trace

Frames of `deepspeed/utils/timer.py` around a synchronise, of `deepspeed/runtime/` around `aten::item`.

## Example

```python
result = {"fp16": {"enabled": True}, "wall_clock_breakdown": True}
```

## Use instead

Not run: it takes DeepSpeed.

```python
result = {"bf16": {"enabled": True}, "timers": {"throughput": {"enabled": False}}}
```

## Versions

Timers are on and synchronise by default; read in DeepSpeed 0.17.

## References

- https://www.deepspeed.ai/docs/config-json/
- deepspeed/utils/timer.py (ThroughputTimer), deepspeed/utils/config.py, deepspeed/runtime/zero/stage_1_and_2.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

ID = "deepspeed"
NAME = "DeepSpeed waits to time or to check a step"
CAUSE = Cause.EXPLICIT
WHY = """\
A timer that synchronises drains the device twice a step; a test for overflow needs all gradients.
"""
WHEN_FINE = """\
While tuning, to see the throughput.

In fp16 the step has to know of an overflow, to skip itself.
"""

_PLACES = (
    # timer.py, ThroughputTimer.start and stop: `if self.config.synchronized: get_accelerator().synchronize()`
    LibraryPlace(
        file="deepspeed/utils/timer.py",
        functions=("start", "stop"),
        title="DeepSpeed's throughput timer waits for the whole device",
        fix='In the configuration "timers": {"throughput": {"enabled": false}}, or "synchronized": false to keep a '
        "rougher one.",
    ),
    # timer.py, CudaEventTimer.get_elapsed_msec: end_event.synchronize(), asked for by wall_clock_breakdown
    LibraryPlace(
        file="deepspeed/utils/timer.py",
        title="DeepSpeed's timers wait for their events",
        fix='In the configuration "wall_clock_breakdown": false.',
    ),
    # stage_1_and_2.py, step: `if self.check_grad_overflow: self.check_overflow(…)`; for bf16 off unless asked for
    LibraryPlace(
        file="deepspeed/runtime",
        functions=("has_overflow", "has_overflow_serial", "check_overflow", "_has_inf_or_nan", "has_inf_or_nan"),
        title="DeepSpeed asks whether a gradient overflowed",
        fix='Train in bfloat16, "bf16": {"enabled": true}, where check_grad_overflow is off by default; fp16 needs the '
        "answer to skip a step.",
        cause=Cause.CHECK,
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
