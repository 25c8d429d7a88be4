"""Each layer sends the number of valid rows to the device anew.

Source: https://github.com/NVIDIA/TensorRT-LLM/pull/16680
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
ROWS, WIDTH, LAYERS = 256, 1024, 32


def before() -> Callable[[], Tensor]:
    """Return a step that copies a pageable tensor of the host in each layer."""
    return _step(anew=True)


def after() -> Callable[[], Tensor]:
    """Return a step that has it on the device already, once for all layers."""
    return _step(anew=False)


def _step(anew: bool) -> Callable[[], Tensor]:
    layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)).to(DEVICE)
    tokens, places = torch.randn(ROWS, WIDTH, device=DEVICE), torch.arange(ROWS, device=DEVICE)
    on_host = torch.tensor([ROWS - 16])
    on_device = on_host.to(DEVICE)

    @torch.no_grad()
    def step() -> Tensor:
        x = tokens
        for layer in layers:
            valid = on_host.to(DEVICE, torch.long) if anew else on_device
            x = torch.where((places < valid)[:, None], torch.tanh(layer(x)), x)
        return x.sum()

    return step
