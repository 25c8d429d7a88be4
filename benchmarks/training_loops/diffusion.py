"""A denoiser whose schedule is an array of the host, indexed by the steps of each batch."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def chosen(table, steps, shape):
    values = torch.from_numpy(table).to(device=steps.device)[steps].float()
    while len(values.shape) < len(shape):
        values = values[..., None]
    return values + torch.zeros(shape, device=steps.device)


class Schedule:
    def __init__(self):
        remaining = np.cumprod(1.0 - np.linspace(1e-4, 0.02, 100))
        self.remaining, self.lost = np.sqrt(remaining), np.sqrt(1.0 - remaining)
        self.numbers = list(range(100))

    def losses(self, model, x, steps):
        noise = torch.randn_like(x)
        noisy = chosen(self.remaining, steps, x.shape) * x + chosen(self.lost, steps, x.shape) * noise
        numbers = torch.tensor(self.numbers, device=steps.device, dtype=steps.dtype)
        return (model(noisy, numbers[steps]) - noise).square().mean(1)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 8)

    def embedded(self, steps):
        rates = torch.exp(-math.log(100) * torch.arange(0, 4, dtype=torch.float32) / 4).to(device=steps.device)
        angles = steps[:, None].float() * rates[None]
        return torch.cat([angles.cos(), angles.sin()], dim=-1)

    def forward(self, x, steps):
        return self.inner(torch.cat([x, self.embedded(steps)], 1))


def main():
    device = torch.device("cuda")
    model, schedule = Denoiser().to(device), Schedule()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.zeros(64)), batch_size=8, pin_memory=True)
    running, count = 0.0, 0
    for _ in range(2):
        for x, label in loader:
            x = x.to(device)
            label = label.to(device)
            steps = torch.randint(0, 100, (x.shape[0],), device=device)
            loss = schedule.losses(model, x, steps).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
            count += 1
            if count % 4 == 0:
                mean = torch.tensor(running / 4, device=device)
                print(count, mean.item())
                running = 0.0


main()
