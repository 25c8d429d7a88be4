"""A transformer over text with a mask of its own, whose loss is summed up on the host."""

from __future__ import annotations

import torch
from torch import nn

device = torch.device("cuda")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 1, enable_nested_tensor=False)
        self.decoder = nn.Linear(16, 32)
        self.mask = None

    def forward(self, source):
        if self.mask is None or self.mask.size(0) != len(source):
            self.mask = torch.log(torch.tril(torch.ones(len(source), len(source)))).to(source.device)
        return self.decoder(self.encoder(self.embedding(source), mask=self.mask))


text = torch.randint(0, 32, (200, 4)).to(device)
model = Model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def part(source, k):
    return source[k : k + 10], source[k + 1 : k + 11].view(-1)


def evaluate(source):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for k in range(0, 100, 10):
            data, targets = part(source, k)
            total += len(data) * nn.functional.cross_entropy(model(data).view(-1, 32), targets).item()
    return total / len(source)


for epoch in range(2):
    model.train()
    total = 0.0
    for number, k in enumerate(range(0, 100, 10)):
        data, targets = part(text, k)
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(data).view(-1, 32), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total += loss.item()
        if number % 5 == 0 and number > 0:
            print(epoch, total / 5)
            total = 0
    print(evaluate(text))
