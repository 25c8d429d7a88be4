"""An off-policy agent: each step acts, keeps what it saw in a buffer of the host, and trains on a sample of it."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import nn


class Buffer:
    def __init__(self, device):
        self.device = device
        self.rows = [np.zeros((256, 3), np.float32), np.zeros((256, 1), np.int64), np.zeros((256, 1), np.float32)]

    def to_torch(self, array, copy=True):
        if copy:
            return torch.tensor(array, device=self.device)
        return torch.as_tensor(array, device=self.device)

    def sample(self, count):
        chosen = np.random.randint(0, 256, size=count)
        return tuple(map(self.to_torch, (row[chosen] for row in self.rows)))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.inner(x)


device = torch.device("cuda")
network, target = Network().to(device), Network().to(device)
target.load_state_dict(network.state_dict())
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
buffer = Buffer(device)
seen = np.zeros((1, 3), np.float32)
for step in range(12):
    if random.random() < 0.1:
        action = np.array([0])
    else:
        action = torch.argmax(network(torch.Tensor(seen).to(device)), dim=1).cpu().numpy()
    buffer.rows[1][step] = action
    seen = np.random.rand(1, 3).astype(np.float32)
    states, actions, rewards = buffer.sample(16)
    with torch.no_grad():
        best, _ = target(states).max(dim=1)
        wanted = rewards.flatten() + 0.99 * best
    old = network(states).gather(1, actions).squeeze()
    loss = nn.functional.mse_loss(wanted, old)
    if step % 3 == 0:
        print(step, loss.item(), old.mean().item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 0:
        for slow, fast in zip(target.parameters(), network.parameters(), strict=True):
            slow.data.copy_(0.5 * fast.data + 0.5 * slow.data)
