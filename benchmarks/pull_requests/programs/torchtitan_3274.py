"""Each layer repeats indices by counts on the device.

Source: https://github.com/pytorch/torchtitan/pull/3274
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
TOKENS, WIDTH, EXPERTS, TOP, LAYERS = 4096, 512, 16, 2, 12


def before() -> Callable[[], Tensor]:
    """Return a step in which `repeat_interleave` reads back how long its output is."""
    return _step(size=None)


def after() -> Callable[[], Tensor]:
    """Return a step that says it: each token goes to so many experts, so the counts' sum is known."""
    return _step(size=TOKENS * TOP)


def _step(size: int | None) -> Callable[[], Tensor]:
    routers = nn.ModuleList(nn.Linear(WIDTH, EXPERTS) for _ in range(LAYERS)).to(DEVICE)
    scales = torch.randn(LAYERS, EXPERTS, WIDTH, device=DEVICE) * 0.1
    adam = torch.optim.SGD(routers.parameters(), lr=1e-3)
    tokens, experts = torch.randn(TOKENS, WIDTH, device=DEVICE), torch.arange(EXPERTS, device=DEVICE)

    def step() -> Tensor:
        x = tokens
        for router, scale in zip(routers, scales, strict=True):
            weight, chosen = router(x).softmax(-1).topk(TOP)
            order = chosen.flatten().argsort(stable=True)
            counts = (chosen.flatten()[:, None] == experts).sum(0)
            owner = torch.repeat_interleave(experts, counts, output_size=size)
            worked = x[order // TOP] * scale[owner] * weight.flatten()[order][:, None]
            x = x + torch.zeros_like(worked).index_copy(0, order, worked).view(TOKENS, TOP, WIDTH).sum(1)
        loss = x.square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss

    return step
