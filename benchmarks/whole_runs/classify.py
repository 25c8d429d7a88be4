"""Train a classifier of images that workers prepare; validate after each 40 steps."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.whole_runs.clock import clock

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, SIZE, BATCH = (96, 64, 64) if DEVICE == "cuda" else (8, 16, 8)


class Images(Dataset):
    def __len__(self) -> int:
        return 40 * BATCH

    def __getitem__(self, k: int) -> tuple[torch.Tensor, int]:
        image = torch.rand(3, SIZE + 8, SIZE + 8)
        return (image[:, 4:-4, 4:-4].flip(2) - image.mean()) / image.std(), k % 10


def network() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, WIDTH, 3, padding=1)]
    for _ in range(12):
        layers += [nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, 10))


def validate(model: nn.Module, batches: DataLoader) -> float:
    model.eval()
    right = 0
    with torch.no_grad():
        for count, (images, labels) in enumerate(batches):
            right += (model(images.to(DEVICE)).argmax(1).cpu() == labels).sum().item()
            if count == 12:
                break
    model.train()
    return right / (13 * BATCH)


def main(epochs: int) -> None:
    torch.manual_seed(0)
    model = network().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = DataLoader(Images(), BATCH, num_workers=4, persistent_workers=True, pin_memory=DEVICE == "cuda")
    held_out = DataLoader(Images(), BATCH, num_workers=2, persistent_workers=True)
    for _ in range(epochs):
        total = 0.0
        clock("step")
        for number, (images, labels) in enumerate(batches):
            loss = nn.functional.cross_entropy(model(images.to(DEVICE)), labels.to(DEVICE))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if number + 1 < len(batches):
                clock("step")
        clock("validation")
        print(f"loss {total / len(batches):.4f}, right {validate(model, held_out):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
