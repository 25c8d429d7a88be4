"""Two networks against each other; five numbers are printed in each step."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda:0")
maker = nn.Sequential(nn.ConvTranspose2d(8, 3, 8), nn.Tanh()).to(device)
judge = nn.Sequential(nn.Conv2d(3, 1, 8), nn.Flatten(), nn.Sigmoid()).to(device)
criterion = nn.BCELoss()
fixed = torch.randn(4, 8, 1, 1, device=device)
judge_optimizer = torch.optim.Adam(judge.parameters(), lr=2e-4)
maker_optimizer = torch.optim.Adam(maker.parameters(), lr=2e-4)
loader = DataLoader(torch.randn(96, 3, 8, 8), batch_size=16, shuffle=True)

for epoch in range(2):
    for k, data in enumerate(loader, 0):
        judge.zero_grad()
        real = data.to(device)
        label = torch.full((real.size(0),), 1.0, dtype=real.dtype, device=device)
        real_error = criterion(judge(real).view(-1), label)
        real_error.backward()
        mean_real = judge(real).mean().item()
        fake = maker(torch.randn(real.size(0), 8, 1, 1, device=device))
        label.fill_(0.0)
        fake_error = criterion(judge(fake.detach()).view(-1), label)
        fake_error.backward()
        error = real_error + fake_error
        judge_optimizer.step()
        maker.zero_grad()
        label.fill_(1.0)
        output = judge(fake).view(-1)
        maker_error = criterion(output, label)
        maker_error.backward()
        mean_fake = output.mean().item()
        maker_optimizer.step()
        print(f"[{epoch}][{k}] {error.item():.4f} {maker_error.item():.4f} {mean_real:.4f} {mean_fake:.4f}")
        if k % 4 == 0:
            picture = maker(fixed).detach().cpu()
            print(picture.shape)
