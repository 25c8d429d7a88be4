"""Non-maximum suppression reads the number of kept boxes back to the host.

## What it finds

`torchvision.ops.nms`, `batched_nms` and the detection heads built on them.

## How it shows in the trace

`torchvision::nms > aten::masked_select > aten::nonzero`, or a copy to the host below `torchvision::nms`.

## Example

```python
from torchvision.ops import nms

boxes = torch.cat([x[:, :2], x[:, :2] + 1], dim=1)
kept = nms(boxes, x[:, 3], 0.5)
result = boxes[kept].sum()
```

## Use instead

Not compared: a fixed number selects different boxes.

```python
boxes = torch.cat([x[:, :2], x[:, :2] + 1], dim=1)
best = x[:, 3].topk(16).indices
result = boxes[best].sum()
```

## Versions

Checked in traces of torchvision 0.26 and in the source of older versions; the call that shows the wait has changed.

## References

- https://docs.pytorch.org/vision/stable/generated/torchvision.ops.nms.html
- torchvision/csrc/ops/cuda/nms_kernel.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "nms"
NAME = "nms reads the number of boxes back"
CAUSE = Cause.SHAPE
WHY = """\
The number of remaining boxes is known only after the suppression has run; the host waits for it.

In older versions, torchvision's kernel also copies its overlap matrix.
"""
WHEN_FINE = """\
In inference, where the boxes go to the host anyway.

In training pick a fixed number with `topk` and mask, or run the suppression for the whole batch at once to wait once.
"""

_OWN = (
    "Suppress the whole batch at once (batched_nms) so that it waits once, or keep a fixed number of boxes with topk "
    "and carry a mask."
)
_DETECTORS = (  # 0.26, rpn.py, filter_proposals, and roi_heads.py, postprocess_detections: a loop over the images
    "No option avoids this: the detector runs NMS per image. Leave it if the step is "
    "device-bound; a detector with a fixed number of queries (DETR) needs no NMS."
)


def match(call: Call) -> Match | None:
    """Match anything below torchvision's suppression ops."""
    op = next((op for op in call.ops if op.startswith("torchvision::") and "nms" in op), "")
    batched = call.facts.direction == "HtoD" and any(
        n.startswith("torchvision::") and "nms" in n for n in call.after[:6]
    )
    if not (op or batched or call.in_library("torchvision/ops/boxes.py")):
        return None
    return Match(
        title="nms waits for the number of boxes it keeps",
        fix=_DETECTORS if call.in_library("torchvision/models/detection") else _OWN,
        for_caller=True,
        removal=Removal.KERNELS,
    )
