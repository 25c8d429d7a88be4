"""Joints are chosen by a list in Python.

Source: https://github.com/isaac-sim/IsaacLab/pull/5472
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
ENVIRONMENTS, JOINTS, TERMS = 8192, 24, 20
CHOSEN = [0, 3, 5, 7, 11, 17, 18, 23]


def before() -> Callable[[], Tensor]:
    """Return a step in which each term of the reward sends the list to the device."""
    return _step(once=False)


def after() -> Callable[[], Tensor]:
    """Return a step that has made an index of the list once."""
    return _step(once=True)


def _step(once: bool) -> Callable[[], Tensor]:
    joints = torch.tensor(CHOSEN, device=DEVICE) if once else CHOSEN
    position, target = torch.randn(2, ENVIRONMENTS, JOINTS, device=DEVICE)
    weights = torch.rand(TERMS, device=DEVICE).unbind()
    policy = nn.Sequential(nn.Linear(JOINTS, 512), nn.ELU(), nn.Linear(512, JOINTS)).to(DEVICE)

    @torch.no_grad()
    def step() -> Tensor:
        q = position + 0.1 * policy(position)
        reward = torch.zeros(ENVIRONMENTS, device=DEVICE)
        for weight in weights:
            error = (q[:, joints] - target[:, joints]).square().sum(-1)
            reward = reward + weight * torch.exp(-error)
            q = q + 0.01 * policy(q)
        return reward.mean()

    return step
