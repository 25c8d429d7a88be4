"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

_PLACES = (
    # 0.26, generalized_rcnn.py, retinanet.py, fcos.py and ssd.py, forward: `if degenerate_boxes.any():`, once an image
    LibraryPlace(
        file="torchvision/models/detection",
        functions=("forward",),
        after=("aten::any",),
        title="the detector checks for each image whether a target box is degenerate",
        fix="No option avoids this: check the boxes once in the dataset, and override the model's forward without the "
        "check. This removes one wait per image and step.",
        cause=Cause.CHECK,
    ),
    # 0.26, transform.py, normalize: `torch.as_tensor(self.image_mean, dtype=dtype, device=device)`, and image_std
    LibraryPlace(
        file="torchvision/models/detection/transform.py",
        functions=("normalize",),
        direction="HtoD",
        title="the detector copies mean and deviation to the device for each image",
        fix="Give it device tensors once: model.transform.image_mean = "
        "torch.tensor(model.transform.image_mean, device=device), and image_std likewise.",
        cause=Cause.PAGEABLE,
    ),
    # 0.26, _utils.py, BoxCoder.encode_single: `torch.as_tensor(self.weights, dtype=dtype, device=device)`
    LibraryPlace(
        file="torchvision/models/detection/_utils.py",
        functions=("encode_single",),
        direction="HtoD",
        title="the detector copies the weights of its box coder to the device",
        fix="Give it a device tensor once: for coder in (model.rpn.box_coder, model.roi_heads.box_coder): "
        "coder.weights = torch.tensor(coder.weights, device=device).",
        cause=Cause.PAGEABLE,
    ),
    # 0.26, transform.py, resize_boxes and resize_keypoints: `torch.tensor(s, …, device=boxes.device)`, four an image
    LibraryPlace(
        file="torchvision/models/detection/transform.py",
        functions=("resize_boxes", "resize_keypoints"),
        direction="HtoD",
        title="the detector copies the sizes of each image to the device",
        fix="Resize images and boxes in the dataset and create the model with _skip_resize=True, which skips it in "
        "training.",
        cause=Cause.PAGEABLE,
    ),
    # 0.26, _utils.py, BoxCoder.decode_single: `torch.tensor(0.5, …, device=pred_h.device)`, twice a call
    LibraryPlace(
        file="torchvision/models/detection",
        direction="HtoD",
        title="the detector copies a constant to the device",
        fix="No option avoids this: one small copy for each call of the box coder or of the anchors, whatever the "
        "number of images: larger batches make them rarer.",
        cause=Cause.PAGEABLE,
        removal=Removal.PINNED_COPY,
    ),
    # 0.26, _utils.py, BalancedPositiveNegativeSampler.__call__: `torch.where(matched_idxs_per_image >= 1)[0]`
    LibraryPlace(
        file="torchvision/models/detection/_utils.py",
        functions=("__call__",),
        under=("aten::nonzero", "aten::nonzero_numpy"),
        title="the detector counts its positive and negative boxes for sampling",
        fix="model.rpn.fg_bg_sampler and model.roi_heads.fg_bg_sampler can be replaced by a callable that draws a "
        "fixed number: torch.where(matched >= 1, torch.rand_like(score), -1).topk(k), and likewise for matched == 0, "
        "scattered into two masks.",
        removal=Removal.KERNELS,
    ),
    # 0.26, _utils.py, Matcher; rpn.py, filter_proposals; roi_heads.py; retinanet.py and ssd.py, compute_loss
    LibraryPlace(
        file="torchvision/models/detection",
        title="the detector waits for a number of boxes",
        fix="No option avoids this: the sizes of its tensors depend on the boxes found. Leave it if the step is "
        "device-bound; a detector with a fixed number of queries (DETR) matches once for all images.",
        removal=Removal.KERNELS,
    ),
    # 0.26, ops/poolers.py, _multiscale_roi_align: `torch.where(levels == level)[0]` for each level
    LibraryPlace(
        file="torchvision/ops/poolers.py",
        title="the pooler waits for the number of boxes of each level",
        fix="No option avoids this: it takes torch.where(levels == level) for each level of the pyramid. A pooler with "
        "one level (featmap_names=['0']) doesn't wait.",
        removal=Removal.KERNELS,
    ),
    # 0.26, ops/boxes.py, remove_small_boxes: `torch.where(keep)[0]`, which rpn.py, filter_proposals, calls
    LibraryPlace(
        file="torchvision/ops/boxes.py",
        functions=("remove_small_boxes",),
        title="boxes that are too small are counted and removed",
        fix="No option avoids this: keep the mask, and give small boxes a score of zero instead of leaving them out.",
        removal=Removal.KERNELS,
    ),
    # 0.26, ops/boxes.py, _batched_nms_coordinate_trick: `torch.tensor(1).to(boxes)`
    LibraryPlace(
        file="torchvision/ops/boxes.py",
        functions=("_batched_nms_coordinate_trick",),
        direction="HtoD",
        title="batched_nms copies the number one to the device",
        fix="nms() of boxes shifted by class doesn't: nms(boxes + (idxs * (boxes.max() + 1))[:, "
        "None], scores, iou_threshold).",
        cause=Cause.PAGEABLE,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
