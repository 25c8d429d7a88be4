"""`CUDA_LAUNCH_BLOCKING=1` makes every launch wait for its kernel.

## What it finds

A trace in which at least nine of ten kernels end before the call that launched them returns.

## How it shows in the trace

Launches as long as their kernels, each kernel inside its launch. One finding stands for all launches. In an ordinary
trace a launch returns before its kernel starts; a launch that is long because the queue is full ends long before its
kernel.

## Example

```python
result = x.relu().sum()  # with CUDA_LAUNCH_BLOCKING=1 in the environment
```

## Use instead

Not recorded: the variable must be set before the program starts; a recording of its own holds it.

```python
result = x.relu().sum()  # without it
```

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/cuda_environment_variables.html
- https://docs.nvidia.com/cuda/cuda-c-programming-guide/#concurrent-execution-between-host-and-device
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "launch-blocking"
NAME = "Every launch waits for its kernel"
CAUSE = Cause.DEBUG
WHY = """\
Each launch returns only when its kernel has ended, so host and device never run in parallel: each step takes the sum of
both.

It is set by `CUDA_LAUNCH_BLOCKING=1`, on ROCm by `AMD_SERIALIZE_KERNEL` or `HIP_LAUNCH_BLOCKING`.
"""
WHEN_FINE = """\
While looking for the kernel behind an illegal memory access.
"""


def match(call: Call) -> Match | None:
    """Match the one call that stands for all launches that wait."""
    if not call.facts.launches:
        return None
    return Match(
        title=f"all {call.facts.launches} launches wait for their kernel: CUDA_LAUNCH_BLOCKING is set",
        fix="Unset CUDA_LAUNCH_BLOCKING (AMD_SERIALIZE_KERNEL, HIP_LAUNCH_BLOCKING) and record again.",
        removal=Removal.NOTHING,
    )
