"""A small network reads its loss in each training step.

Source: https://github.com/lnccbrown/LANfactory/pull/120
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
BATCH = 50_000


def before() -> Callable[[], Tensor]:
    """Return a training step that adds its loss up on the host."""
    return _step(read=True)


def after() -> Callable[[], Tensor]:
    """Return one that adds it up on the device."""
    return _step(read=False)


def _step(read: bool) -> Callable[[], Tensor]:
    sizes = (7, 100, 100, 100)
    layers = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Linear(100, 1)).to(DEVICE)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    features, labels = torch.randn(BATCH, 7, device=DEVICE), torch.randn(BATCH, 1, device=DEVICE)
    sums: dict[str, float | Tensor] = {"loss": 0.0}

    def step() -> Tensor:
        loss = nn.functional.huber_loss(model(features), labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
        sums["loss"] += loss.item() if read else loss.detach()
        return loss

    return step
