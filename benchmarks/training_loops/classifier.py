"""An image classifier whose meters keep averages, with its validation; the model is wrapped for several devices."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Average:
    def __init__(self, name):
        self.name, self.sum, self.count = name, 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    def __str__(self):
        return f"{self.name} {self.sum / max(1, self.count):.3f}"


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        _, guesses = output.topk(max(topk), 1)
        right = guesses.t().eq(target.view(1, -1))
        return [right[:k].reshape(-1).float().sum(0, keepdim=True) * 100.0 / target.size(0) for k in topk]


def train(loader, model, criterion, optimizer, device):
    losses, top1 = Average("loss"), Average("top1")
    model.train()
    for k, (images, target) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        acc1, _ = accuracy(output, target, topk=(1, 2))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1[0], images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if k % 2 == 0:
            print(losses, top1)


def validate(loader, model, device):
    right = 0
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images, target = images.to(device), target.to(device)
            guesses = model(images).argmax(1)
            right += (guesses == target).sum().item()
    return right


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(64, 3, 8, 8), torch.randint(0, 4, (64,)))
    loader = DataLoader(data, batch_size=16, shuffle=True, pin_memory=True)
    model = nn.DataParallel(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 4))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for epoch in range(3):
        train(loader, model, nn.CrossEntropyLoss(), optimizer, device)
        print(epoch, validate(DataLoader(data, batch_size=32), model, device))


main()
