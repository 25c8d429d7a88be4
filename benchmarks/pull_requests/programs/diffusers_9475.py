"""The scheduler indexes a table of the host by a time on the device.

Source: https://github.com/huggingface/diffusers/pull/9475
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
WIDTH, TOKENS, LAYERS, TIMES = 2048, 4096, 8, 4


def before() -> Callable[[], Tensor]:
    """Return a sampling loop that waits once a time, with the device's work before it."""
    return _step(on_device=True)


def after() -> Callable[[], Tensor]:
    """Return one whose times are numbers of the host's."""
    return _step(on_device=False)


def _step(on_device: bool) -> Callable[[], Tensor]:
    dtype = torch.bfloat16 if DEVICE == "cuda" else torch.float32
    tokens = TOKENS if DEVICE == "cuda" else 64
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)) for _ in range(LAYERS)]
    denoiser = nn.Sequential(*layers).to(DEVICE, dtype)
    alphas = torch.linspace(0.99, 0.1, 1000)
    times = torch.linspace(999, 0, TIMES).long()
    on_host, noise = times.tolist(), torch.randn(tokens, WIDTH, device=DEVICE, dtype=dtype)
    of_device = times.to(DEVICE)

    @torch.no_grad()
    def step() -> Tensor:
        x = noise
        for number in range(TIMES):
            predicted = denoiser(x)
            alpha = alphas[of_device[number]] if on_device else alphas[on_host[number]]
            x = alpha.sqrt() * x + (1 - alpha).sqrt() * predicted
        return x.float().mean()

    return step
