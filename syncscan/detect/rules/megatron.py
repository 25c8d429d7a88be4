"""Megatron reads the gradients' norm and looks for overflow on the host.

## What it finds

Clipping without Transformer Engine's scaling by a tensor, counting zeros for the log, and the loss scaler of fp16.

## How it shows in the trace

Frames of `megatron/core/optimizer/` around `aten::item`.

## Example

```python
norm = x.norm()
result = x * min(1.0, 1.0 / (norm.item() + 1e-6))
```

## Use instead

Not run: the optimizer is Megatron's.

```python
norm = x.norm()
result = x * (1.0 / (norm + 1e-6)).clamp(max=1.0)
```

## Versions

Read in Megatron core 0.1x.

## References

- https://docs.nvidia.com/megatron-core/
- megatron/core/optimizer/clip_grads.py, optimizer.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause

ID = "megatron"
NAME = "Megatron reads the gradients' norm"
CAUSE = Cause.READBACK
WHY = """\
The norm of all gradients is ready after the whole backward pass; as a Python number it holds the host until then.
"""
WHEN_FINE = """\
When it is the last of a step and its ranks wait for one another anyway.
"""

_PLACES = (
    # clip_grads.py, get_grad_norm_fp32: `.item()` unless transformer_engine has multi_tensor_scale_tensor
    LibraryPlace(
        file="megatron/core/optimizer/clip_grads.py",
        functions=("get_grad_norm_fp32",),
        title="clipping reads the gradients' norm",
        fix="Install a Transformer Engine that has multi_tensor_scale_tensor: the norm (of order 2) then stays on the "
        "device. --clip-grad 0 gives up clipping, and with it the norm.",
    ),
    # clip_grads.py, count_zeros_fp32: `total_num_zeros.item()`
    LibraryPlace(
        file="megatron/core/optimizer/clip_grads.py",
        functions=("count_zeros_fp32",),
        title="the zeros in the gradients are counted, for the log",
        fix="Leave out --log-num-zeros-in-grad.",
        cause=Cause.LOG,
    ),
    # optimizer.py, MixedPrecisionOptimizer._unscale_main_grads_and_check_for_nan: `self.found_inf.item() > 0`
    LibraryPlace(
        file="megatron/core/optimizer",
        functions=("_unscale_main_grads_and_check_for_nan",),
        title="the optimizer asks whether a gradient overflowed",
        fix="Train with --bf16, which needs no loss scaler; fp16 needs the answer to skip a step.",
        cause=Cause.CHECK,
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
