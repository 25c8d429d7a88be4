"""torchvision's detectors count boxes on the host.

## What it finds

Faster and Mask R-CNN, RetinaNet, FCOS and SSD: checks of the targets, matching, sampling and filtering of boxes.

## How it shows in the trace

Frames of `torchvision/models/detection/` or `torchvision/ops/` around `aten::nonzero`, `aten::item` or an indexing.

## Example

```python
boxes = x[:, :4].abs()
result = torch.where(boxes.sum(1) > 3)[0].numel()
```

## Use instead

Not run: the models are torchvision's.

```python
boxes = x[:, :4].abs()
result = (boxes.sum(1) > 3).sum()
```

## Versions

Read in torchvision 0.2x.

## References

- https://docs.pytorch.org/vision/stable/models.html#object-detection
- torchvision/models/detection/_utils.py, rpn.py, roi_heads.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "torchvision-detection"
NAME = "A detector counts boxes on the host"
CAUSE = Cause.SHAPE
WHY = """\
How many boxes are positive, kept or left is known only when the device has found them, and the next tensors are as long
as that: several waits for each image.
"""
WHEN_FINE = """\
While the step is bound by its device.

No argument of the models turns them off; fewer images a step, or fewer proposals, make fewer or shorter ones.
"""

_PLACES = (
    # generalized_rcnn.py and retinanet.py, forward: `if degenerate_boxes.any():`, once an image
    LibraryPlace(
        file="torchvision/models/detection",
        functions=("forward",),
        after=("aten::any",),
        title="the detector asks for each image whether a target box is degenerate",
        fix="No argument spares it: check the boxes once in the dataset and override forward of the model without the "
        "check. One test for each image and step goes.",
        cause=Cause.CHECK,
    ),
    # _utils.py, BalancedPositiveNegativeSampler and Matcher; rpn.py, filter_proposals; roi_heads.py; poolers.py
    LibraryPlace(
        file="torchvision/models/detection",
        title="the detector waits for a number of boxes",
        fix="No argument spares it: its tensors are as long as boxes are found. Fewer of them: a lower "
        "rpn_pre_nms_top_n_train, or another detector with fixed numbers of queries (DETR); run matching and "
        "sampling for all images at once.",
        removal=Removal.KERNELS,
    ),
    LibraryPlace(
        file="torchvision/ops/poolers.py",
        title="the pooler waits for the number of boxes of each level",
        fix="No argument spares it: it takes torch.where(levels == level) for each level of the pyramid. A pooler of "
        "one level (featmap_names=['0']) doesn't ask.",
        removal=Removal.KERNELS,
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
