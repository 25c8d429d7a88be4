"""Input on its way to the device: pageable, pinned ahead or inline, prefetched, made on the CPU, made on the device."""

from collections.abc import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F
from setting import Build, Setting, Step
from torch.profiler import record_function as scope


def parts(setting: Setting) -> tuple[Callable[[torch.Tensor], None], list[torch.Tensor]]:
    """One training step of a small convolutional classifier as a function of its batch, and two batches on the host."""
    torch.manual_seed(0)
    shape = (setting.of(256, 2), 3, setting.of(224, 16), setting.of(224, 16))
    model = nn.Sequential(
        nn.Conv2d(3, 32, 7, 4), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).to(setting.device)  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    labels = torch.randint(0, 10, shape[:1], device=setting.device)

    def train(x: torch.Tensor) -> None:
        with scope("train"):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), labels).backward()
            optimizer.step()

    return train, [torch.randn(shape) for _ in range(2)]


def build(way: str) -> Build:
    """A step whose batch comes to the device in this way, on the stream that trains."""

    def made(setting: Setting) -> Step:
        train, images = parts(setting)
        shape = images[0].shape
        if way == "pinned":
            images = [x.pin_memory() for x in images]
        turn = iter(range(1 << 30))

        def batch() -> torch.Tensor:
            x = images[next(turn) % 2]
            if way == "inline_pin":
                return x.pin_memory().to(setting.device, non_blocking=True)
            if way == "cpu_built":
                return torch.rand(shape).to(setting.device)
            if way == "on_device":
                return torch.rand(shape, device=setting.device)
            return x.to(setting.device, non_blocking=way == "pinned")

        def step() -> None:
            with scope("input"):
                x = batch()
            train(x)

        return step

    return made


def prefetched(setting: Setting) -> Step:
    """The next batch comes from pinned memory on a stream of its own while this one trains."""
    side = torch.cuda.Stream()
    train, images = parts(setting)
    images = [x.pin_memory() for x in images]
    ready: list[torch.Tensor] = []
    turn = iter(range(1 << 30))

    def fetch() -> None:
        with scope("input"), torch.cuda.stream(side):
            ready.append(images[next(turn) % 2].to(setting.device, non_blocking=True))

    def step() -> None:
        if not ready:
            fetch()
        here = torch.cuda.current_stream()
        here.wait_stream(side)
        x = ready.pop()
        x.record_stream(here)
        fetch()
        train(x)

    return step


VARIANTS: dict[str, Build] = {
    f"copies.{way}": build(way) for way in ("pageable", "pinned", "inline_pin", "cpu_built", "on_device")
}
VARIANTS["copies.prefetched"] = prefetched
