"""Pairs of queries and boxes are read one by one.

Source: https://github.com/LibreYOLO/libreyolo/pull/726
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
WIDTH, TOKENS, LAYERS, QUERIES, PAIRS = 1024, 8192, 10, 300, 30


def before() -> Callable[[], Tensor]:
    """Return a training step that reads two numbers a pair, once its costs have been read back."""
    return _step(one_by_one=True)


def after() -> Callable[[], Tensor]:
    """Return one that reads all pairs at once."""
    return _step(one_by_one=False)


def _step(one_by_one: bool) -> Callable[[], Tensor]:
    tokens = TOKENS if DEVICE == "cuda" else 64
    layers = [nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
    model = nn.Sequential(*layers).to(DEVICE)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-4)
    image = torch.randn(tokens, WIDTH, device=DEVICE)
    boxes = torch.rand(QUERIES, 4, device=DEVICE)

    def matched() -> list[list[int]]:
        costs = (boxes[:, None] - boxes[None, :PAIRS]).abs().sum(-1).cpu()  # the solver's, on the host
        pairs = torch.stack([costs.argmin(0), torch.arange(PAIRS)], 1).to(DEVICE).unique(dim=0)
        if one_by_one:
            return [[int(query.item()), int(box.item())] for query, box in pairs]
        return pairs.tolist()

    def step() -> Tensor:
        out = model(image)
        share = sum(query % 3 == box % 3 for query, box in matched()) / PAIRS
        loss = out.square().mean() * (1 + share)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return loss

    return step
