"""The steps behind the recorded traces: a name and a builder each; a builder returns the step."""

from collections.abc import Callable

import demo_step
import torch
import torch.nn as nn
import torch.nn.functional as F
import zoo
from torch.profiler import record_function as scope

from syncscan.capture import logged_step

Step = Callable[[], None]
DEVICE = "cuda"
WIDTH = 2048


class Classifier(nn.Module):
    """Some wide layers: enough work that the device lags behind the host."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(WIDTH, WIDTH), nn.GELU())])
        self.head = nn.Linear(WIDTH, 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


def classify(habit: str) -> Callable[[], Step]:
    """A training step with one habit: `log_item`, `pageable`, or none."""

    def build() -> Step:
        torch.manual_seed(0)
        model = Classifier().to(DEVICE)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        images, labels = torch.randn(2048, WIDTH), torch.randint(0, 100, (2048,))
        if habit != "pageable":
            images, labels = images.pin_memory(), labels.pin_memory()
        running = torch.zeros((), device=DEVICE)
        history: list[float] = []

        def step() -> None:
            with scope("data"):
                x = images.to(DEVICE, non_blocking=habit != "pageable")
                y = labels.to(DEVICE, non_blocking=habit != "pageable")
            with scope("forward"):
                loss = F.cross_entropy(model(x), y)
            with scope("log loss"):
                if habit == "log_item":
                    history.append(loss.item())
                else:
                    running.add_(loss.detach())
            with scope("backward"):
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
            with scope("optimizer"):
                optimizer.step()

        return step

    return build


def masked_loss(version: int) -> Callable[[], Step]:
    """One version of the demo's step, at the size that the post published."""
    return lambda: demo_step.build(DEVICE, demo_step.PUBLISHED, version)


WORKLOADS: dict[str, Callable[[], Step]] = {
    "maskedloss.v0": masked_loss(0),
    "maskedloss.v1": masked_loss(1),
    "maskedloss.v2": masked_loss(2),
    "maskedloss.v3": masked_loss(3),
    "log_item": classify("log_item"),
    "pageable": classify("pageable"),
    "clean": classify("clean"),
    "logged": lambda: logged_step.build(DEVICE),
    "logged.kept": lambda: logged_step.build(DEVICE, reads=False),
    "lines": zoo.build,
    "lines.stacks": zoo.build,
}
"""Name of the trace → how to build its step. A name that ends in `.stacks` is recorded with Python frames."""
