"""Four reads each denoising step, in eager mode.

Source: https://github.com/huggingface/diffusers/pull/14589
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
WIDTH, HEADS, TOKENS, LAYERS = 1536, 24, 4096, 12


def before() -> Callable[[], Tensor]:
    """Return a denoising step that reads its time from the device for the guidance and for each of three lookups."""
    return _step(on_device=True)


def after() -> Callable[[], Tensor]:
    """Return one whose time is a number of the host's."""
    return _step(on_device=False)


def _step(on_device: bool) -> Callable[[], Tensor]:
    dtype = torch.bfloat16 if DEVICE == "cuda" else torch.float32
    tokens = TOKENS if DEVICE == "cuda" else 32
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, batch_first=True, norm_first=True)
    denoiser = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).to(DEVICE, dtype)
    alphas, time = torch.linspace(0.99, 0.1, 1000), 500
    of_device = torch.tensor(time, device=DEVICE)
    noise = torch.randn(2, tokens, WIDTH, device=DEVICE, dtype=dtype)

    @torch.no_grad()
    def step() -> Tensor:
        with_text, without = denoiser(noise)
        t: Tensor | int = of_device if on_device else time
        number = of_device.item() if on_device else time
        guidance = 1 + 6 * (1 - math.cos(math.pi * ((1000 - number) / 1000) ** 5)) / 2
        now, then, last = alphas[t], alphas[t - 20], alphas[t - 40]
        predicted = without + guidance * (with_text - without)
        x = now.sqrt() * noise[0] + (1 - then).sqrt() * predicted
        return (x * last).float().mean()

    return step
