"""A value is read back right after a collective: the host waits for the slowest rank.

## What it finds

`dist.all_reduce(metric); metric.item()` in every step; `.tolist()` of counts before or after an exchange.

## Why it stalls

The value exists when all ranks have contributed, so the wait includes the slowest of them.

## How it shows in the trace

`aten::item` or a copy to the host with `c10d::allreduce_`, `nccl:all_reduce` or `record_param_comms` as the op
directly before.

## Example

```python
loss = x.mean()
result = loss.item()  # after torch.distributed.all_reduce(loss)
```

## Use instead

Not run: a collective needs several processes.

```python
loss = x.mean()
history = torch.zeros((), device=device)
history += loss  # reduce and read the sum every some steps
result = history.item()
```

## When it is fine

At the end of an epoch, or every some hundred steps.

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce
- torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis

ID = "collective-readback"
NAME = "A reduced value is read back"
CAUSE = Cause.DIST

_COLLECTIVE = ("c10d::", "nccl:", "record_param_comms", "_c10d_functional::", "c10d_functional::")


def match(call: Call) -> Diagnosis | None:
    """A read-back whose last ops before it are a collective's."""
    last = [n for n in call.before[-3:] if n not in ("aten::div_", "aten::div", "aten::detach", "aten::mul_")]
    if not (last and last[-1].startswith(_COLLECTIVE) and (call.scalar or call.direction == "DtoH")):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="a reduced value is read back: the wait includes the slowest rank",
        why="The value exists only when every rank has contributed; the host waits for all of them.",
        fix="Accumulate on the device, and reduce and read every some steps.",
        when_fine="At the end of an epoch.",
    )
