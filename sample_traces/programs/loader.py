"""A step that waits for its DataLoader: without workers, with too few of them, with enough."""

from collections.abc import Iterator

import torch
import torch.nn as nn
import torch.nn.functional as F
from setting import Build, Setting, Step
from torch.profiler import record_function as scope
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    """Samples that take about a millisecond of a CPU each, as decoding and augmenting does."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        x = torch.rand(3, 96, 96)
        for _ in range(self.rounds):
            x = x.flatten().sort().values.view(3, 96, 96)
        return x, index % 10


def build(workers: int) -> Build:
    """A step of a convolutional classifier on batches of 64 from a loader with so many workers."""

    def made(setting: Setting) -> Step:
        torch.manual_seed(0)
        width = setting.of(256, 8)
        model = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10),
        ).to(setting.device)  # fmt: skip
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        loader = DataLoader(
            Slow(setting.of(1, 0)),
            batch_size=setting.of(64, 2),
            num_workers=workers if not setting.small else min(workers, 1),
            pin_memory=setting.device == "cuda",
        )
        batches: Iterator[list[torch.Tensor]] = iter(loader)

        def step() -> None:
            with scope("load"):
                x, y = next(batches)
            with scope("to device"):
                x, y = x.to(setting.device, non_blocking=True), y.to(setting.device, non_blocking=True)
            with scope("train"):
                optimizer.zero_grad(set_to_none=True)
                F.cross_entropy(model(x), y).backward()
                optimizer.step()

        return step

    return made


VARIANTS = {"loader.none": build(0), "loader.few": build(1), "loader.enough": build(12)}
