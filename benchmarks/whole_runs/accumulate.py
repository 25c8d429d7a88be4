"""Train on four micro-batches a step; log after each ten steps, store a checkpoint after each 40."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.whole_runs.clock import clock

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH, DEPTH, BATCH = (2048, 8, 256) if DEVICE == "cuda" else (32, 2, 8)


def main(steps: int) -> None:
    torch.manual_seed(0)
    folder = Path(tempfile.mkdtemp())
    model = nn.Sequential(*(layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU()))).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for number in range(steps):
        clock("step")
        optimizer.zero_grad()
        for _ in range(4):
            inputs = torch.randn(BATCH, WIDTH, device=DEVICE)
            loss = (model(inputs) - inputs).square().mean() / 4
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if number % 10 == 9:
            print(f"loss {loss.item():.4f}")
        if number % 40 == 39:
            clock("checkpoint")
            torch.save({"model": model.state_dict()}, folder / "last.pt")
    (folder / "last.pt").unlink(missing_ok=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
