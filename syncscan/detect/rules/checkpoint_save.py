"""Saving a checkpoint copies tensors to the host one by one.

## What it finds

`torch.save`, distributed checkpoints, `state_dict()` copied to the CPU.

## How it shows in the trace

Copies to the host with frames of `torch/serialization.py`, `torch/distributed/checkpoint/` or a C frame `cpu` below
them.

## Example

```python
import io
buffer = io.BytesIO()
torch.save({"x": x}, buffer)
result = buffer.tell() > 0
```

## Use instead

```python
import io
buffer = io.BytesIO()
torch.save({"x": x.to("cpu")}, buffer)  # one snapshot, written by another thread
result = buffer.tell() > 0
```

## Versions

`async_save` since torch 2.3; `use_pinned_memory_for_d2h` since about torch 2.7.

## References

- https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
- torch/serialization.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "checkpoint-save"
NAME = "Saving copies tensors to the host"
CAUSE = Cause.READBACK
WHY = """\
Each tensor is copied into pageable memory, with one wait per tensor.
"""
WHEN_FINE = """\
A checkpoint is rare, and its consistency matters more.

`torch.distributed.checkpoint.async_save` copies into pinned memory and writes in the background;
`torch.utils.serialization.config.save.use_pinned_memory_for_d2h` speeds up `torch.save`.
"""


_SAVES = tuple(
    f"{head}{name}"
    for head in ("", "_")
    for name in "save_checkpoint save_model save_pretrained save_state save_state_dict save_weights save_ckpt "
    "save_adapter save_optimizer save_optimizer_and_scheduler save_file save_16bit_model".split()
)
"""Names of library functions that save a model; `save_image` and `save_figure` save drawings."""
_SAVE = ("save", "_save")
_FILES = ("checkpoint", "saver", "saving", "serializ", "safetensors", "trainer", "modeling")
"""A function that is merely called `save` saves a model if its file is for that; a result's `save` saves a picture."""


def match(call: Call) -> Match | None:
    """Match a copy to the host inside torch's saving code."""
    if call.facts.direction != "DtoH":
        return None
    in_torch = call.in_library("torch/serialization.py", "torch/distributed/checkpoint")
    saves = in_torch or call.in_library_function_of(*_SAVES) or call.in_library_function_of(*_SAVE, files=_FILES)
    if not saves:
        return None
    return Match(
        title="saving a checkpoint waits for every tensor",
        fix="Save rarely; torch.distributed.checkpoint.async_save copies into pinned memory and writes in the "
        "background.",
        for_caller=True,
        use=Use.SHOWN,
        removal=Removal.ASYNC_COPY,
    )
