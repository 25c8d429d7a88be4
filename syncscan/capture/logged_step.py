"""Build a training step that reads its loss before it makes the next batch: the second one of the demo.

The device has nothing to do while the host makes the batch, since the host came to that only when the device was done.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

WIDTH = 3072
ROWS = 16_384
TOKENS = 24000
"""Numbers that the host makes for a batch: some milliseconds of Python."""


def build(where: str = "cuda", reads: bool = True) -> Callable[[], None]:
    """The step.

    Args:
        where: a device.
        reads: whether the host reads the loss at every step; else it is summed on the device.
    """
    torch = importlib.import_module("torch")
    scope = torch.profiler.record_function
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 100)).to(where, torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    table = torch.randn(WIDTH, WIDTH, device=where, dtype=torch.bfloat16)
    labels = torch.randint(0, 100, (ROWS,), device=where)
    history: list[float] = []
    running = torch.zeros((), device=where)
    batch, made = [_batch(torch, 0).to(where)], [0]

    def step() -> None:
        with scope("forward"):
            loss = torch.nn.functional.cross_entropy(model(table[batch[-1]]), labels)
        with scope("backward"):
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
        with scope("optimizer"):
            optimizer.step()
        with scope("log loss"):
            if reads:
                history.append(loss.item())
            else:
                running.add_(loss.detach())
        with scope("next batch"):
            made[0] += 1
            batch[:] = [_batch(torch, made[0]).to(where, non_blocking=True)]

    return step


def _batch(torch: Any, seed: int) -> Any:
    """Rows of the table, one by one, as a tokenizer in Python would make them."""
    numbers = [(seed + k * 2_654_435_761) % WIDTH for k in range(TOKENS)]
    return torch.tensor(numbers[:ROWS], pin_memory=torch.cuda.is_available())
