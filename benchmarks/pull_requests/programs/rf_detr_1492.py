"""Indices of matched pairs lie on the host and index the device.

Source: https://github.com/roboflow/rf-detr/pull/1492
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
WIDTH, TOKENS, LAYERS, LEVELS, GATHERS, PAIRS = 1024, 4096, 8, 5, 7, 60


def before() -> Callable[[], Tensor]:
    """Return a training step that reads the pairs back once, and sends them at each use."""
    return _step(read=True)


def after() -> Callable[[], Tensor]:
    """Return one that leaves them on the device."""
    return _step(read=False)


def _step(read: bool) -> Callable[[], Tensor]:
    tokens = TOKENS if DEVICE == "cuda" else 64
    layers = [nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
    model = nn.Sequential(*layers).to(DEVICE)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-4)
    image, target = torch.randn(2, tokens, WIDTH, device=DEVICE)
    scores = torch.randn(LEVELS, tokens, device=DEVICE)

    def step() -> Tensor:
        out = model(image)
        pairs = torch.stack([level.topk(min(PAIRS, tokens)).indices for level in scores])
        pairs = pairs.cpu() if read else pairs
        loss = out.square().mean()
        for rows in pairs:
            for part in range(GATHERS):
                loss = loss + (out[rows, part] - target[rows, part]).abs().mean() / GATHERS
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss

    return step
