"""Build a training step whose loss waits for the device in five places, and capture it.

The step is the one of Chaim Rand's "PyTorch Model Performance Analysis and Optimization", part 3, written anew: a
segmentation network whose loss looks at its targets with nonzero, unique and a boolean mask. Four versions take one of
them away each, until nothing waits.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscan.capture import device
from syncscan.capture.plan import Plan
from syncscan.capture.session import Session

CLASSES = 10
BACKGROUND = CLASSES - 1
IGNORED = -1
CHANNELS = 10


@dataclass(frozen=True, slots=True)
class Size:
    """How much work a step has: images in a batch, their side in pixels, hidden layers of the network."""

    batch: int
    side: int
    layers: int


PUBLISHED = Size(256, 256, 10)
"""As in the post: 17.3 GB of device memory and 0.286 s a step on an H200."""

SMALL = Size(32, 256, 10)
"""For devices with less memory: an eighth of that."""

HOST = Size(2, 64, 4)
"""For a CPU: some milliseconds a step."""


def capture(out: str = "syncscan-out", version: int = 0) -> Path:
    """Capture the step on this machine's GPU, or its CPU if there is none: wait 1, warmup 4, active 3.

    Args:
        out: folder for the trace.
        version: one of the four versions of the loss, see `Loss`.

    Returns:
        The trace.
    """
    where, size = choose()
    step = build(where, size, version)
    with Session(Path(out), "maskedloss", Plan(), notify=lambda sentence: None) as prof:
        while not prof.done:
            step()
            prof.step()
    return prof.paths[0]


def choose() -> tuple[str, Size]:
    """The device to run on ("cuda", "xpu" or "cpu") and the size of a step that fits it."""
    module = device.backend()
    if module is None:
        return "cpu", HOST
    name = module.__name__.split(".")[-1]
    free, _ = module.mem_get_info() if hasattr(module, "mem_get_info") else (0, 0)
    return name, PUBLISHED if free > 24 << 30 else SMALL


def build(where: str, size: Size, version: int = 0) -> Callable[[], None]:
    """Make the network, its optimizer and two batches, and return the step.

    Args:
        where: the device's name.
        size: the size of a step.
        version: 0 waits in nonzero, the assignment through its indices, unique and the mask, and in backward; 1 takes
            `where` instead of nonzero; 2 sorts instead of unique; 3 lets cross-entropy ignore the pixels.
    """
    torch = importlib.import_module("torch")
    scope = torch.profiler.record_function
    network = _network(size.layers).to(where)
    loss_of = _Loss(version)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9)
    images = _host_tensor(torch.randn(size.batch, 3, size.side, size.side), where)
    targets = _host_tensor(torch.randint(IGNORED, CLASSES, (size.batch, size.side, size.side)), where)

    def step() -> None:
        batch = images.to(where, non_blocking=True)
        target = targets.to(where, non_blocking=True) if where != "cpu" else targets.clone()
        with scope("forward"):
            predicted = network(batch)
        with scope("loss"):
            loss = loss_of(predicted, target)
        with scope("backward"):
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
        with scope("optimizer"):
            optimizer.step()

    return step


def _host_tensor(tensor: Any, where: str) -> Any:
    return tensor.pin_memory() if where == "cuda" else tensor


def _network(layers: int) -> Any:
    nn = importlib.import_module("torch.nn")
    hidden = [nn.Conv2d(CHANNELS, CHANNELS, 3, padding="same") for _ in range(layers)]
    first, last = nn.Conv2d(3, CHANNELS, 3, padding="same"), nn.Conv2d(CHANNELS, CLASSES, 3, padding="same")
    return nn.Sequential(first, nn.ReLU(), *hidden, last)


class _Loss:
    """Cross-entropy over the pixels that count, zero where a batch has only one class; each part in its own scope."""

    def __init__(self, version: int) -> None:
        self.torch = importlib.import_module("torch")
        self.version = version
        self.cross_entropy = self.torch.nn.CrossEntropyLoss(ignore_index=IGNORED if version >= 3 else -100)

    def __call__(self, predicted: Any, target: Any) -> Any:
        target = self.without_background(target)
        if self.version >= 2:
            kinds = self.count_classes(target)
            loss = self.masked(predicted, target)
            with self.torch.profiler.record_function("where"):
                return self.torch.where(kinds < 2, 0.0 * loss, loss)
        with self.torch.profiler.record_function("unique"):
            classes = self.torch.unique(target)
        with self.torch.profiler.record_function("numel"):
            only_one = classes.numel() < 2
        loss = self.masked(predicted, target)
        return 0.0 * loss if only_one else loss

    def without_background(self, target: Any) -> Any:
        """Mark the background as ignored."""
        torch, scope = self.torch, self.torch.profiler.record_function
        if self.version >= 1:
            with scope("update background"):
                return torch.where(target == BACKGROUND, IGNORED, target)
        with scope("non_zero"):
            where = torch.nonzero(target == BACKGROUND, as_tuple=True)
        with scope("index assign"):
            target[where] = IGNORED
        return target

    def count_classes(self, target: Any) -> Any:
        """How many distinct values the target has, as a tensor: without asking the device."""
        torch, scope = self.torch, self.torch.profiler.record_function
        with scope("sort"):
            ordered, _ = torch.sort(target.flatten())
        with scope("deriv"):
            rises = ordered[1:] - ordered[:-1]
        with scope("count_nonzero"):
            return torch.count_nonzero(rises) + 1

    def masked(self, predicted: Any, target: Any) -> Any:
        """The loss of the pixels that aren't ignored."""
        torch, scope = self.torch, self.torch.profiler.record_function
        if self.version >= 3:
            with scope("calc loss"):
                return self.cross_entropy(predicted, target)
        with scope("create mask"):
            mask = target != IGNORED
        with scope("permute"):
            by_pixel = torch.permute(predicted, [0, 2, 3, 1])
        with scope("mask"):
            kept_target = target[mask]
            kept = by_pixel[mask.unsqueeze(-1).expand(-1, -1, -1, CLASSES)].reshape(-1, CLASSES)
        with scope("calc loss"):
            return self.cross_entropy(kept, kept_target)
