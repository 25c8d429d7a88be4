"""DDP with `find_unused_parameters=True` reads back which parameters were used.

## What it finds

`DistributedDataParallel(find_unused_parameters=True)` when a parameter was not used on this rank.

## How it shows in the trace

`aten::copy_` to pageable memory on the autograd thread, among ops called `torch.distributed.ddp.reducer::…`, after the
buckets' all-reduce.

## Example

```python
result = x.sum()  # DistributedDataParallel(model, find_unused_parameters=True)
```

## Use instead

Not run: DDP needs several processes.

```python
result = x.sum()  # DistributedDataParallel(model, static_graph=True)
```

## Versions

Checked in the source of torch 2.6 and in a trace of 2.11: the copy happens only when a parameter was unused.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
- torch/csrc/distributed/c10d/reducer.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "unused-parameters"
NAME = "DDP reads back which parameters were used"
CAUSE = Cause.DIST
WHY = """\
`find_unused_parameters=True` copies the map of used parameters to the host at the end of the backward pass, behind all
gradients and collectives.
"""
WHEN_FINE = """\
When the used parameters really change from step to step.

Nothing is copied while every parameter is used.
"""

_REDUCER = "torch.distributed.ddp.reducer::"
"""Names of the reducer's ops while it hands the reduced gradients back."""


def _is_reducers(op: str) -> bool:
    return op.startswith(_REDUCER)


def match(call: Call) -> Match | None:
    """Match a blocking copy to the host among the reducer's own ops."""
    if not (call.top == call.leaf == "aten::copy_" and call.facts.direction == "DtoH"):
        return None
    if not (call.nearest_before(_is_reducers, 8) or call.nearest_after(_is_reducers, 8)):
        return None
    return Match(
        title="DDP waits to find out which parameters were used",
        fix="Turn it off if all parameters are used; use static_graph=True if the same ones are always unused.",
        use=Use.STEERS,
        removal=Removal.NOTHING,
    )
