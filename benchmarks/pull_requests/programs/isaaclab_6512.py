"""Buffers of environments that begin anew are set to a number.

Source: https://github.com/isaac-sim/IsaacLab/pull/6512
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
ENVIRONMENTS, BUFFERS, WORK = 4096, 12, 30


def before() -> Callable[[], Tensor]:
    """Return a step that assigns a number by index, which sends the number to the device and waits for it."""

    def reset(buffer: Tensor, ids: Tensor) -> None:
        buffer[ids] = 0.0

    return _step(reset)


def after() -> Callable[[], Tensor]:
    """Return a step that fills by index."""

    def reset(buffer: Tensor, ids: Tensor) -> None:
        buffer.index_fill_(0, ids, 0.0)

    return _step(reset)


def _step(reset: Callable[[Tensor, Tensor], None]) -> Callable[[], Tensor]:
    policy = nn.Sequential(nn.Linear(64, 256), nn.ELU(), nn.Linear(256, 64)).to(DEVICE)
    buffers = [torch.zeros(ENVIRONMENTS, 8, device=DEVICE) for _ in range(BUFFERS)]
    state, ids = torch.randn(ENVIRONMENTS, 64, device=DEVICE), torch.arange(0, ENVIRONMENTS, 7, device=DEVICE)

    @torch.no_grad()
    def step() -> Tensor:
        x = state
        for _ in range(WORK):
            x = torch.tanh(x + 0.1 * policy(x))
        for number, buffer in enumerate(buffers):
            buffer += x[:, number : number + 8]
            reset(buffer, ids)
        return x.sum() + sum(buffer.mean() for buffer in buffers)

    return step
