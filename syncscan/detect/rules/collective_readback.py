"""A value is read back right after a collective: the host waits for the slowest rank.

## What it finds

`dist.all_reduce(metric); metric.item()` in every step; `.tolist()` of counts before or after an exchange.

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
history += loss  # reduce and read the sum every N steps
result = history.item()
```

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce
- torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.slice_names import is_collective

ID = "collective-readback"
NAME = "A reduced value is read back"
CAUSE = Cause.DIST
WHY = """\
The value exists only after every rank has contributed, so the wait includes the slowest rank.
"""
WHEN_FINE = """\
At the end of an epoch, or every few hundred steps.
"""

_AVERAGES = ("aten::div_", "aten::div", "aten::detach", "aten::mul_")
"""Ops that programs apply to a reduced value before they read it."""


def match(call: Call) -> Match | None:
    """Match a read-back whose last ops before it are a collective's."""
    if not reads_back(call):
        return None
    if not is_collective(call.nearest_before(_is_no_average, 3)):
        return None
    return Match(
        title="a reduced value is read back: the wait includes the slowest rank",
        fix="Accumulate on the device, and reduce and read every N steps.",
        removal=Removal.NOTHING,
    )


def _is_no_average(op: str) -> bool:
    return op not in _AVERAGES
