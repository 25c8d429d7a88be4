"""An autoencoder whose loss is summed up in each step, and whose test draws what it makes."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda")


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread, self.back = nn.Linear(16, 4), nn.Linear(16, 4), nn.Linear(4, 16)

    def forward(self, x):
        mean, spread = self.mean(x.view(-1, 16)), self.spread(x.view(-1, 16))
        noise = torch.randn_like(spread)
        return self.back(mean + noise * torch.exp(0.5 * spread)).sigmoid(), mean, spread


def loss_of(made, x, mean, spread):
    same = nn.functional.binary_cross_entropy(made, x.view(-1, 16), reduction="sum")
    return same - 0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())


def train(model, loader, optimizer, epoch):
    model.train()
    total = 0
    for k, data in enumerate(loader):
        data = data.to(device)
        optimizer.zero_grad()
        loss = loss_of(*(lambda made: (made[0], data, *made[1:]))(model(data)))
        loss.backward()
        total += loss.item()
        optimizer.step()
        if k % 2 == 0:
            print(f"epoch {epoch} loss {loss.item() / len(data):.4f}")
    return total


def test(model, loader):
    model.eval()
    total = 0
    with torch.no_grad():
        for data in loader:
            data = data.to(device)
            made, mean, spread = model(data)
            total += loss_of(made, data, mean, spread).item()
    return total, made.cpu()


if __name__ == "__main__":
    model = Coder().to(device)
    loader = DataLoader(torch.rand(64, 1, 4, 4), batch_size=16, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        train(model, loader, optimizer, epoch)
        test(model, loader)
        with torch.no_grad():
            sample = torch.randn(8, 4).to(device)
            picture = model.back(sample).cpu()
