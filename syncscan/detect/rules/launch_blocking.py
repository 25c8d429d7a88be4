"""`CUDA_LAUNCH_BLOCKING=1` makes every launch wait for its kernel.

## What it finds

A trace in which at least nine of ten kernels end before the call that launched them returns.

## Why it stalls

With `CUDA_LAUNCH_BLOCKING=1` (on ROCm `AMD_SERIALIZE_KERNEL`, `HIP_LAUNCH_BLOCKING`) host and device never overlap:
each step takes the sum of both.

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

## When it is fine

While looking for the kernel of an illegal memory access.

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/cuda_environment_variables.html
- https://docs.nvidia.com/cuda/cuda-c-programming-guide/#concurrent-execution-between-host-and-device
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "launch-blocking"
NAME = "Every launch waits for its kernel"
CAUSE = Cause.DEBUG


def match(call: Call) -> Diagnosis | None:
    """The one call that stands for all launches that wait."""
    if not call.launches:
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title=f"all {call.launches} launches wait for their kernel: CUDA_LAUNCH_BLOCKING is set",
        why="Each launch returns only when its kernel has ended, so host and device never work at the same time.",
        fix="Unset CUDA_LAUNCH_BLOCKING (AMD_SERIALIZE_KERNEL, HIP_LAUNCH_BLOCKING) and record again.",
        when_fine="While looking for the kernel of an illegal memory access.",
        removal=Removal.NOTHING,
    )
