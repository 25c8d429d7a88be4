"""Evaluate a language model without an optimizer: a loss for each batch; after each 30 a text is generated."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.whole_runs.clock import clock

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, LAYERS, LENGTH, WORDS = (512, 6, 256, 8000) if DEVICE == "cuda" else (32, 1, 16, 100)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True, dropout=0.0)
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.words(words)))


def generate(model: nn.Module, words: torch.Tensor, count: int) -> list[int]:
    for _ in range(count):
        best = model(words)[:, -1].argmax(-1)
        words = torch.cat([words, best[:, None]], 1)
        if best.item() == 0:
            break
    return words[0].tolist()


def main(batches: int) -> None:
    torch.manual_seed(0)
    model = Model().to(DEVICE).eval()
    data = torch.randint(1, WORDS, (64, 8, LENGTH))
    losses = []
    with torch.inference_mode():
        for number in range(batches):
            clock("step")
            words = data[number % len(data)].to(DEVICE)
            loss = nn.functional.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
            losses.append(loss.item())
            if number % 30 == 29:
                clock("generation")
                print(f"loss {sum(losses) / len(losses):.4f}", generate(model, words[:1, :8], 24)[-4:])


if __name__ == "__main__":
    main(int(sys.argv[1]))
