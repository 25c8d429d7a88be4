"""Nested tensors read their lengths back to the host.

## What it finds

`unbind` and `split` of jagged tensors, `to_padded_tensor` of strided ones, attention over jagged ones without
`max_seqlen`. `to_padded_tensor` of a jagged tensor didn't wait (torch 2.11, measured).

## How it shows in the trace

Ops with `nested` or `jagged` in their name over `aten::item` or a copy to the host; frames in `torch/nested/`.

## Example

```python
offsets = torch.arange(0, 65, 16, device=device)
nested = torch.nested.nested_tensor_from_jagged(x, offsets)
result = nested.unbind()[0].sum()
```

## Use instead

```python
lengths = [16, 16, 16, 16]  # the collator knows them
result = x.split(lengths)[0].sum()
```

## Versions

Jagged layout since torch 2.1; the strided layout reads more.

## References

- https://docs.pytorch.org/docs/stable/nested.html
- torch/nested/_internal/nested_tensor.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "nested-tensor"
NAME = "A nested tensor reads its lengths back"
CAUSE = Cause.SHAPE
WHY = """\
The lengths of a nested tensor are on the device; padding, splitting and attention need the longest or all of the
lengths on the host.
"""
WHEN_FINE = """\
Once per batch.

A jagged tensor caches the lengths, so reuse it. Pass `min_seqlen` and `max_seqlen` to
`torch.nested.nested_tensor_from_jagged`.
"""


def match(call: Call) -> Match | None:
    """Match an op of nested tensors around the call, or their Python code."""
    op = call.op_with("nested", "jagged", "aten::to_padded_tensor")
    jagged = "PythonSubclass" in call.ops and call.top in ("aten::unbind", "aten::split_with_sizes", "aten::chunk")
    if not (op or jagged or call.in_library("torch/nested")):
        return None
    what = op.removeprefix("aten::") or "a nested tensor"
    return Match(
        title=f"{what} waits for lengths",
        fix="Pass min_seqlen and max_seqlen when it is made (nested_tensor_from_jagged), and reuse the same "
        "nested tensor.",
        removal=Removal.KERNELS,
    )
