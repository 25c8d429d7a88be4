"""Work that is done once: compiling, capturing a graph, loading a checkpoint.

## What it finds

CUDA graph capture, `torch.compile`'s benchmarking of kernels and recording of its graphs, `load_state_dict`, tuning.

## Why it stalls

These synchronise on purpose, to measure or to leave a clean state.

## How it shows in the trace

Waits with frames of `torch/cuda/graphs.py`, `torch/_inductor/`, `torch/_dynamo/`, `load_state_dict`.

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

## When it is fine

Always, as long as it happens before the steps that are measured: warm up longer.

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
- torch/cuda/graphs.py, torch/_inductor/cudagraph_trees.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "one-off"
NAME = "One-off work waits"
CAUSE = Cause.INIT

_PLACES = {
    "torch/cuda/graphs.py": ("capturing a CUDA graph", Cause.EXPLICIT),
    "torch/_inductor/": ("torch.compile's benchmarking", Cause.INIT),
    "triton/runtime/autotuner.py": ("tuning a kernel", Cause.INIT),
    ": load_state_dict": ("loading a state dict", Cause.INIT),
    ": _load_from_state_dict": ("loading a state dict", Cause.INIT),
    "torch/serialization.py": ("loading a checkpoint", Cause.INIT),
}


def match(call: Call) -> Diagnosis | None:
    """A wait inside code that runs once."""
    found = next((_PLACES[part] for part in _PLACES if call.in_library(part)), None)
    if found is None or (call.in_library("torch/serialization.py") and call.direction == "DtoH"):
        return None
    place, cause = found
    return Diagnosis(
        ID,
        NAME,
        cause,
        title=f"{place} waits, once",
        why="It synchronises on purpose, to measure or to leave a clean state.",
        fix="Keep it out of the measured steps: warm up longer.",
        when_fine="Always, before the training loop.",
        removal=Removal.NOTHING,
    )
