"""A detector's training: lists of images, a logger around the loader, transforms on tensors of the host."""

from __future__ import annotations

import math
from collections import defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RandomCrop(nn.Module):
    def forward(self, image, target):
        if torch.rand(1) < 0.5:
            left = int(torch.randint(0, 4, (1,)))
            image = image[..., left : left + 8]
        keep = target["boxes"].sum(1) > 0.1
        if not keep.any():
            return image[..., :8], target
        target["boxes"] = target["boxes"][keep]
        return image[..., :8], target


class Pictures(Dataset):
    def __init__(self):
        self.transform = RandomCrop()

    def __len__(self):
        return 16

    def __getitem__(self, k):
        target = {"boxes": torch.rand(3, 4), "labels": torch.ones(3, dtype=torch.int64)}
        return self.transform(torch.rand(3, 8, 12), target)


class Logger:
    def __init__(self):
        self.meters = defaultdict(list)

    def update(self, **values):
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
            self.meters[name].append(value)

    def log_every(self, iterable, often, header):
        for k, thing in enumerate(iterable):
            yield thing
            if k % often == 0:
                print(header, {name: sum(values) / len(values) for name, values in self.meters.items()})


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 4, 8), nn.Linear(4, 1)

    def forward(self, images, targets):
        features = self.body(torch.stack(images)).flatten(1)
        scores = self.head(features).sigmoid().flatten()
        good = torch.where(scores > 0.1)[0]
        boxes = torch.cat([target["boxes"] for target in targets])
        return {"score": scores[good].mean(), "box": boxes[boxes[:, 0] > 0.5].sum() * scores.mean()}


def train(model, optimizer, loader, device, scaler):
    model.train()
    logger = Logger()
    for images, targets in logger.log_every(loader, 2, "train"):
        images = list(image.to(device) for image in images)  # noqa: C400  (as public programs write it)
        targets = [{key: value.to(device) for key, value in target.items()} for target in targets]
        losses = model(images, targets)
        loss = sum(value for value in losses.values())
        number = loss.item()
        if not math.isfinite(number):
            break
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        logger.update(loss=loss, **losses)
        logger.update(rate=optimizer.param_groups[0]["lr"])


def main():
    device = torch.device("cuda")
    model = Detector().to(device)
    loader = DataLoader(Pictures(), batch_size=4, collate_fn=lambda batch: tuple(zip(*batch, strict=True)))
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(2):
        train(model, torch.optim.SGD(model.parameters(), 0.02), loader, device, scaler)


main()
