"""A call about a kernel waits while CUDA loads the kernel for its first use.

## What it finds

Calls that set or get an attribute of a kernel, and block until the device is done.

## How it shows in the trace

One of several `cudaFuncSetAttribute` (on ROCm `hip…`) takes as long as the work queued before, the others a µs.

## Example

```python
result = (x @ x).softmax(-1)
```

## Use instead

Not recorded: a kernel is loaded once in a process, on its first use.

```python
for _ in range(3):  # before the steps that count, with the same shapes and dtypes
    result = (x @ x).softmax(-1)
```

## Versions

Since CUDA 11.7 if `CUDA_MODULE_LOADING=LAZY` is set, as torch does since 1.13; by default since CUDA 12.2 on Linux
and 12.3 on Windows.

## References

- https://docs.nvidia.com/cuda/cuda-programming-guide/04-special-topics/lazy-loading.html
- https://github.com/pytorch/pytorch/pull/86509
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal
from syncscan.model.runtime_calls import may_load_a_kernel

ID = "module-loading"
NAME = "A kernel is loaded"
CAUSE = Cause.INIT
WHY = """\
CUDA loads a kernel's module when the kernel is first used, and may wait for the device to finish its work first.
"""
WHEN_FINE = """\
Before the loop, and in its first steps: it happens only once.
"""


def match(call: Call) -> Match | None:
    """Match a call about a kernel that measurably blocked."""
    if not may_load_a_kernel(call.facts.api):
        return None
    return Match(
        title=f"{call.facts.api} waits while a kernel is loaded, once",
        fix="Keep it out of the measured steps: warm up longer, with every shape and dtype; or set "
        "CUDA_MODULE_LOADING=EAGER, which loads all kernels when the program starts.",
        confidence=Confidence.MEDIUM,
        intended=True,
        removal=Removal.NOTHING,
    )
