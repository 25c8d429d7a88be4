"""Each layer asks for the longest sequence anew.

Source: https://github.com/sgl-project/sglang/pull/24013
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

DEVICE = os.environ.get("PULL_REQUESTS_DEVICE", "cuda")
LENGTHS = [196, 256, 324, 144, 400, 256]
WIDTH, HEADS, LAYERS = 1024, 16, 27


def before() -> Callable[[], Tensor]:
    """Return a forward pass that reads the length back from the device in each layer."""
    return _step(once=False)


def after() -> Callable[[], Tensor]:
    """Return one that reads it from the host's copy, once."""
    return _step(once=True)


def _step(once: bool) -> Callable[[], Tensor]:
    dtype = torch.bfloat16
    mixers = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(LAYERS)).to(DEVICE, dtype)
    ends = torch.tensor([0, *LENGTHS]).cumsum(0)
    on_device, rows = ends.to(DEVICE), sum(LENGTHS)
    patches = torch.randn(rows, WIDTH, device=DEVICE, dtype=dtype)
    sequence = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS)).to(DEVICE)
    place = torch.arange(rows, device=DEVICE) - on_device[sequence]

    def longest(ends: Tensor) -> int:
        return int((ends[1:] - ends[:-1]).max().item())

    @torch.no_grad()
    def step() -> Tensor:
        x, known = patches, longest(ends)
        for mixer in mixers:
            most = known if once else longest(on_device)
            padded = x.new_zeros(len(LENGTHS), most, 3 * WIDTH)
            padded[sequence, place] = mixer(x)
            q, k, v = padded.view(len(LENGTHS), most, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            x = nn.functional.layer_norm(x + mixed[sequence, place], [WIDTH])
        return x.float().mean()

    return step
