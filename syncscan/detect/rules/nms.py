"""Match anything below torchvision's suppression ops."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_DETECTORS = "torchvision/models/detection"
"""0.26, rpn.py, filter_proposals, and roi_heads.py, postprocess_detections: a loop over the images."""


def match(call: Call) -> Match | None:
    op = next((op for op in call.ops if op.startswith("torchvision::") and "nms" in op), "")
    batched = call.facts.direction == "HtoD" and any(
        n.startswith("torchvision::") and "nms" in n for n in call.after[:6]
    )
    if not (op or batched or call.in_library("torchvision/ops/boxes.py")):
        return None
    return Match(
        variant="detector" if call.in_library(_DETECTORS) else "",
        for_caller=True,
        removal=Removal.KERNELS,
    )
