"""A quantization observer or fake quantization reads its scale back.

## What it finds

Observers' `calculate_qparams`, `fake_quantize_per_channel_affine` with checks, `fused_moving_avg_obs_fake_quant` per
row.

## How it shows in the trace

Ops with `fake_quant` or `obs` in their name, or frames of `torch/ao/quantization/`, over `aten::item` or
`aten::is_nonzero`.

## Example

```python
scales = torch.full((64,), 0.05, device=device)
zero_points = torch.zeros(64, dtype=torch.int32, device=device)
result = torch.fake_quantize_per_channel_affine(x, scales, zero_points, 0, -128, 127)
```

## Use instead

```python
scale = torch.full((), 0.05, device=device)
zero_point = torch.zeros((), dtype=torch.int32, device=device)
result = torch.fake_quantize_per_tensor_affine(x, scale, zero_point, -128, 127)
```

## Versions

Tensor-valued scales are taken since about torch 1.10.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.fake_quantize_per_tensor_affine.html
- aten/src/ATen/native/quantized/cuda/FusedObsFakeQuant.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "quantization"
NAME = "Quantization reads its scale back"
CAUSE = Cause.CHECK
WHY = """\
Scales and zero points are checked, or turned into Python numbers, on the host.
"""
WHEN_FINE = """\
While calibrating.

Freeze the observers before training on; the per-tensor fused path doesn't wait.
"""


def match(call: Call) -> Match | None:
    """Match a quantization op around the call, or torch's quantization code."""
    op = call.op_with("fake_quant", "quantize_per", "_obs_")
    if not (op or _observes(call) or call.in_library("torch/ao/quantization", "torchao")):
        return None
    what = op.removeprefix("aten::") or "a quantization observer"
    return Match(
        title=f"{what} waits for a scale or zero point",
        fix="Keep scale and zero point as tensors, use the fused per-tensor path, and freeze observers after "
        "calibration.",
        removal=Removal.NOTHING,
    )


def _observes(call: Call) -> bool:
    """Return whether an observer looks at its extremes before it computes its scale: zero is mixed into both next."""
    if call.top != "aten::is_nonzero":
        return False
    following = [n for n in call.after[:8] if n not in ("aten::gt", "aten::is_nonzero", "aten::le")]
    return following[:3] == ["aten::zeros_like", "aten::min", "aten::zeros_like"]
