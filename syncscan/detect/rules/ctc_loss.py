"""`F.ctc_loss` with its lengths on the device copies them to the host.

## What it finds

`F.ctc_loss` and `nn.CTCLoss` with `input_lengths` or `target_lengths` as device tensors, on torch's own kernel.

## How it shows in the trace

`aten::ctc_loss > aten::to > aten::_to_copy > aten::copy_` to pageable memory twice, then small copies to the device
below `aten::_ctc_loss`.

## Example

```python
log_probs = x.view(16, 4, 64).log_softmax(2)
targets = labels.view(4, 16)[:, :4] + 1
lengths = torch.full((4,), 16, device=device), torch.full((4,), 4, device=device)
result = F.ctc_loss(log_probs, targets, *lengths)
```

## Use instead

Still waits: torch's own kernel copies other sizes too; measured on torch 2.11, lengths on the CPU made six waits of
eight.

```python
log_probs = x.view(16, 4, 64).log_softmax(2)
targets = labels.view(4, 16)[:, :4] + 1
lengths = torch.full((4,), 16, dtype=torch.int), torch.full((4,), 4, dtype=torch.int)
result = F.ctc_loss(log_probs, targets.int(), *lengths)
```

## Versions

The cuDNN path depends on version and input; the trace shows which one ran (`aten::_cudnn_ctc_loss`).

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html
- aten/src/ATen/native/LossCTC.cpp, aten/src/ATen/native/cuda/LossCTC.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "ctc-loss"
NAME = "ctc_loss copies its lengths to the host"
CAUSE = Cause.SHAPE
WHY = """\
The kernel is launched with the lengths on the host: given as device tensors both are copied there first, and their
products back to the device.
"""
WHEN_FINE = """\
When the lengths are computed on the device.

cuDNN's kernel takes lengths on the host, under the conditions that the documentation names (`int32`, blank 0, targets
of at most 256).
"""

_OPS = ("aten::ctc_loss", "aten::_ctc_loss", "aten::_cudnn_ctc_loss", "aten::_use_cudnn_ctc_loss")


def match(call: Call) -> Match | None:
    """Match anything below `aten::ctc_loss`, or in its backward."""
    if not (call.under(*_OPS) or call.backward.startswith("CtcLossBackward")):
        return None
    return Match(
        title="ctc_loss waits for its lengths",
        fix="Keep input_lengths and target_lengths as CPU tensors (int32), as the data loader made them.",
        removal=Removal.KERNELS,
    )
