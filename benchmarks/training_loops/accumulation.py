"""Micro-batches in an inner loop, the loss read around it; batches from an array, pinned where there is a GPU."""

from __future__ import annotations

import contextlib

import numpy as np
import torch
from torch import nn

device = "cuda"
device_type = "cuda" if "cuda" in device else "cpu"
autocast = contextlib.nullcontext() if device_type == "cpu" else torch.autocast(device_type, torch.bfloat16)
tokens = np.arange(4096, dtype=np.int64) % 64
net = nn.Sequential(nn.Embedding(64, 32), nn.Linear(32, 64)).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", enabled=True)


def batch():
    starts = torch.randint(len(tokens) - 17, (8,))
    x = torch.stack([torch.from_numpy(tokens[k : k + 16]) for k in starts])
    y = torch.stack([torch.from_numpy(tokens[k + 1 : k + 17]) for k in starts])
    if device_type == "cuda":
        x, y = x.pin_memory().to(device, non_blocking=True), y.pin_memory().to(device, non_blocking=True)
    else:
        x, y = x.to(device), y.to(device)
    return x, y


def loss_of(x, y):
    with autocast:
        return nn.functional.cross_entropy(net(x).view(-1, 64), y.view(-1))


@torch.no_grad()
def estimate():
    net.eval()
    losses = torch.zeros(4)
    for k in range(4):
        losses[k] = loss_of(*batch()).item()
    net.train()
    return losses.mean()


x, y = batch()
for iteration in range(9):
    if iteration % 4 == 0:
        print("estimated", estimate())
    for _ in range(2):
        loss = loss_of(x, y) / 2
        x, y = batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if iteration % 2 == 0:
        print(iteration, 2 * loss.item())
