"""Record an object detector's training step on a GPU: `python -m benchmarks.detector OUT.json.gz [MODEL]`.

The models are torchvision's. A detector waits in some twenty-five places, 120 times per step, below many layers of
Python: with stacks that is the hardest common trace to read and to analyze. `detector.stacks.pt.trace.json.gz` beside
this is one step of the first of them (`--steps 1`, on an H200 with torch 2.11): a source for `benchmarks.reading`, best
with `--vary`.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import syncscan

ROOT = Path(__file__).parents[1]
"""Below it paths are written relative: where it lay says nothing to a reader."""
MODELS = ("maskrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn", "retinanet_resnet50_fpn", "ssd300_vgg16")
IMAGES, SIDE, OBJECTS, CLASSES = 4, 512, 8, 91
"""Sizes of a batch; an image has between half of `OBJECTS` and all of them."""


def training(model: str) -> Callable[[], None]:
    """A step of training, as in torchvision's references: images and targets come from the host, the loss is logged."""
    import torch
    import torchvision

    torch.manual_seed(0)
    net = torchvision.models.get_model(model, weights=None, weights_backbone=None, num_classes=CLASSES).cuda().train()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    batch = [_sample(OBJECTS // 2 + number % OBJECTS) for number in range(IMAGES)]

    def step() -> None:
        images = [image.cuda() for image, _ in batch]
        targets = [{key: value.cuda() for key, value in target.items()} for _, target in batch]
        losses = net(images, targets)
        loss = sum(losses.values())
        loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def _sample(objects: int) -> tuple[Any, dict[str, Any]]:
    import torch

    corner = torch.rand(objects, 2) * SIDE / 2
    masks = torch.zeros(objects, SIDE, SIDE, dtype=torch.uint8)
    masks[:, : SIDE // 2, : SIDE // 2] = 1
    target = {
        "boxes": torch.cat([corner, corner + 16 + torch.rand(objects, 2) * SIDE / 3], 1),
        "labels": torch.randint(1, CLASSES, (objects,)),
        "masks": masks,
    }
    return torch.rand(3, SIDE, SIDE), target


def record(target: Path, model: str, steps: int, shapes: bool) -> None:
    """Write a trace of so many steps, with stacks."""
    step = training(model)
    with (
        tempfile.TemporaryDirectory() as folder,
        syncscan.profile(folder, model, active=steps, stacks=True, shapes=shapes, notify=lambda _: None) as session,
    ):
        while not session.done:
            step()
            session.step()
        text = gzip.decompress(session.paths[0].read_bytes()).replace(f"{ROOT}/".encode(), b"")
    target.write_bytes(gzip.compress(text, 9, mtime=0))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path, metavar="OUT.json.gz")
    parser.add_argument("model", nargs="?", choices=MODELS, default=MODELS[0])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--shapes", action="store_true", help="those of inputs too: nested lists in every op")
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        parser.error("this records on a GPU, and there is none.")
    record(arguments.target, arguments.model, arguments.steps, arguments.shapes)


if __name__ == "__main__":
    main()
