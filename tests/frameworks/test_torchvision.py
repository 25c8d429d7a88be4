"""torchvision's detectors: constants that are copied, boxes that are sampled and checked."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROGRAM = """
import torch
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

class Fixed:
    def __init__(self, positive, negative):
        self.positive, self.negative = positive, negative
    def __call__(self, matched):
        return [draw(m >= 1, self.positive) for m in matched], [draw(m == 0, self.negative) for m in matched]

def draw(wanted, most):
    score = torch.where(wanted, torch.rand(wanted.shape, device=wanted.device), -1.0)
    drawn, chosen = score.topk(min(most, len(wanted)))
    return torch.zeros_like(wanted, dtype=torch.uint8).scatter_(0, chosen, (drawn >= 0).to(torch.uint8))

model = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=3).to("cuda").train()
images = [torch.rand(3, 320, 320, device="cuda") for _ in range(2)]
box = torch.tensor([[20.0, 20.0, 200.0, 200.0], [100.0, 50.0, 300.0, 310.0]], device="cuda")
targets = [{"boxes": box, "labels": torch.ones(2, dtype=torch.long, device="cuda")} for _ in images]
def step():
    losses = model(images, targets)  # here
    sum(losses.values()).backward()
"""
RULE = "torchvision-detection"


def test_mean_and_deviation_can_lie_on_the_device(spares: Spares) -> None:
    """The transform makes tensors of them for each image, unless they are some already."""
    switch = (
        "images = [",
        "for name in ('image_mean', 'image_std'):\n"
        "    setattr(model.transform, name, torch.tensor(getattr(model.transform, name), device='cuda'))\nimages = [",
    )
    spares(PROGRAM, switch, rule=RULE, title="mean and deviation", fix="model.transform.image_mean = torch.tensor(")


def test_the_weights_of_a_box_coder_can_lie_on_the_device(spares: Spares) -> None:
    """It holds for the weights of proposals and for those of boxes."""
    switch = (
        "images = [",
        "for coder in (model.rpn.box_coder, model.roi_heads.box_coder):\n"
        "    coder.weights = torch.tensor(coder.weights, device='cuda')\nimages = [",
    )
    fix = "for coder in (model.rpn.box_coder, model.roi_heads.box_coder): coder.weights = torch.tensor(coder.weights,"
    spares(PROGRAM, switch, rule=RULE, title="weights of its box coder", fix=fix)


def test_images_of_the_right_size_need_not_be_resized(spares: Spares) -> None:
    """`_skip_resize` leaves it out in training."""
    switch = ("num_classes=3", "num_classes=3, _skip_resize=True")
    spares(PROGRAM, switch, rule=RULE, title="sizes of each image", fix="_skip_resize=True")


def test_a_sampler_of_fixed_numbers_counts_nothing(spares: Spares) -> None:
    """It takes the place of torchvision's own, twice."""
    switch = (
        "images = [",
        "model.rpn.fg_bg_sampler, model.roi_heads.fg_bg_sampler = Fixed(128, 128), Fixed(128, 384)\nimages = [",
    )
    spares(PROGRAM, switch, rule=RULE, title="to sample of them", fix="model.roi_heads.fg_bg_sampler can be replaced")
