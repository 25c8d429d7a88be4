"""Shared parts of the benchmarks of captures: a small transformer to train, and the time of its steps, on a GPU."""

import time
from collections.abc import Callable

import torch
from torch import nn

Step = Callable[[], None]


def encoder() -> tuple[nn.Module, torch.optim.Optimizer, torch.Tensor]:
    """A small transformer, its optimizer and a batch."""
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0), 6).cuda()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3), torch.randn(16, 128, 256, device="cuda")


def mean_ms(step: Step, steps: int) -> float:
    """The mean time of so many steps in ms, the device drained before and behind them."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps * 1e3
