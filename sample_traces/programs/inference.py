"""Timing an inference (Deci; a CSDN post): EfficientNet-B0 on one image, timed right and in the ways that mislead.

Needs torchvision.
"""

import importlib.util

import torch
import torch.nn as nn
from setting import Build, Setting, Step
from torch.profiler import record_function as scope


class Inference(nn.Module):
    """EfficientNet-B0 with random weights, forward only."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models import efficientnet_b0

        self.network = efficientnet_b0(weights=None).eval()

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)


def images(batch: int = 1) -> torch.Tensor:
    """A batch of 3×224×224 fp32 images on the host."""
    return torch.randn(batch, 3, 224, 224)


model = Inference() if importlib.util.find_spec("torchvision") else None
"""None without torchvision."""


def build(way: str) -> Build:
    """One inference a step, timed right, or with one mistake."""

    def made(setting: Setting) -> Step:
        if model is None:
            raise ImportError("EfficientNet-B0 comes from torchvision, which isn't installed")
        infer = model.to(setting.device)
        host = images()
        here = host.to(setting.device)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times: list[float] = []

        def step() -> None:
            if way == "clock":
                with scope("to device"):
                    x = host.to(setting.device)
                with scope("infer"):
                    infer(x)
                torch.cuda.synchronize()
                return
            begin.record()
            if way == "transfer":
                with scope("to device"):
                    x = host.to(setting.device)
            else:
                x = here
            with scope("infer"):
                infer(x)
            end.record()
            if way != "right":
                with scope("timing"):
                    torch.cuda.synchronize()
                    times.append(begin.elapsed_time(end))

        return step

    return made


VARIANTS = {f"inference.{way}": build(way) for way in ("right", "sync_each", "transfer", "clock", "cold", "single")}
"""`cold` is `sync_each` recorded from its very first call, `single` one sample of it."""
