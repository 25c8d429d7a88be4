"""Packing padded sequences needs the lengths on the host.

## What it finds

`nn.utils.rnn.pack_padded_sequence` with lengths on the device, `pad_packed_sequence` and RNNs over packed sequences.

## How it shows in the trace

A copy to the host with a frame of `torch/nn/utils/rnn.py`, or directly before `aten::_pack_padded_sequence`.

## Example

```python
lengths = torch.full((64,), 64, device=device)
packed = torch.nn.utils.rnn.pack_padded_sequence(x[None].transpose(0, 1), lengths[:1].cpu())
result = packed.data
```

## Use instead

```python
lengths = torch.full((64,), 64)  # stays where the loader made it
packed = torch.nn.utils.rnn.pack_padded_sequence(x[None].transpose(0, 1), lengths[:1])
result = packed.data
```

## Versions

The lengths must be on the CPU since torch 1.7, so the copy is written by the caller.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html
- aten/src/ATen/native/PackedSequence.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "packed-sequence"
NAME = "Packing reads lengths back"
CAUSE = Cause.SHAPE
WHY = """\
The batch sizes of a packed sequence control a loop on the host, so the lengths are copied there from the device.
"""
WHEN_FINE = """\
When the lengths are computed on the device.

Lengths that came from the host needn't be copied back: keep the host's tensor beside the device's. Padding without
packing, with a mask, never waits.
"""


def match(call: Call) -> Match | None:
    """Match a read-back inside torch's packing code, or directly before the packing op."""
    packs = (
        call.facts.direction != "HtoD" and call.top == "aten::to" and "aten::_pack_padded_sequence" in call.after[:6]
    )
    if not (packs or call.in_library("torch/nn/utils/rnn.py") or call.under("aten::_pack_padded_sequence")):
        return None
    return Match(
        title="packing sequences waits for their lengths",
        fix="Keep the lengths on the CPU, where the data loader made them; or pad and mask instead of packing.",
        removal=Removal.NOTHING,
    )
