"""One-time work: compiling, capturing a graph, loading a checkpoint, setting up a library.

## What it finds

CUDA graph capture, `torch.compile`'s benchmarking of kernels and recording of its graphs, `load_state_dict`, tuning;
the `cudaFree` that initializes cuDNN and cuBLAS when an op needs them for the first time.

## How it shows in the trace

Waits with frames of `torch/cuda/graphs.py`, `torch/_inductor/`, `torch/_dynamo/`, `load_state_dict`. A `cudaFree`
that waits for no work, in the first run of an op; torch's allocator calls it after a `cudaMalloc` that failed.

## Example

```python
module = torch.nn.Linear(64, 64, device=device)
module.load_state_dict({name: torch.zeros(p.shape) for name, p in module.state_dict().items()})
result = module(x)
```

## Use instead

```python
module = torch.nn.Linear(64, 64, device=device)
module.load_state_dict({name: torch.zeros_like(p) for name, p in module.state_dict().items()})
result = module(x)
```

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
- torch/cuda/graphs.py, torch/_inductor/cudagraph_trees.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal
from syncscan.model.runtime_calls import allocates, frees

ID = "one-off"
NAME = "One-off work waits"
CAUSE = Cause.INIT
WHY = """\
It happens once, on purpose: to set something up, to measure, or to leave a clean state.
"""
WHEN_FINE = """\
Always, if it happens before the training loop.

Warm up longer if it falls into the measured steps.
"""

_PACKAGES = {
    "torch/cuda/graphs.py": ("capturing a CUDA graph", Cause.EXPLICIT),
    "torch/_inductor": ("torch.compile's benchmarking", Cause.INIT),
    "triton/runtime/autotuner.py": ("tuning a kernel", Cause.INIT),
}
_LOADING = "torch/serialization.py"


def match(call: Call) -> Match | None:
    """Match a wait inside code that runs once, or a library's first call."""
    if _sets_up(call):
        return Match(
            title=f"{call.facts.apis[0]} sets a library up, once",
            fix="Keep it out of the measured steps: warm up longer.",
            confidence=Confidence.MEDIUM,
            intended=True,
            removal=Removal.NOTHING,
        )
    place, cause = _place(call)
    if not place or (call.in_library(_LOADING) and call.facts.direction == "DtoH"):
        return None
    return Match(
        title=f"{place} waits, once",
        fix="Keep it out of the measured steps: warm up longer.",
        cause=cause,
        for_caller=True,
        removal=Removal.NOTHING,
    )


def _sets_up(call: Call) -> bool:
    """Return whether a library creates its handles here, and not torch's allocator gives back what it has."""
    idle = not call.facts.waited and frees(call.facts.apis[0])
    return idle and call.first_run and not allocates(call.call_before)


def _place(call: Call) -> tuple[str, Cause]:
    if call.in_library(*_PACKAGES):
        return next(place for package, place in _PACKAGES.items() if call.in_library(package))
    if call.in_library_function("load_state_dict", "_load_from_state_dict"):
        return "loading a state dict", Cause.INIT
    return ("loading a checkpoint", Cause.INIT) if call.in_library(_LOADING) else ("", Cause.INIT)
