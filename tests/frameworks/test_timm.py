"""timm: mixing, loading, averages and AdamP."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.frameworks.conftest import Seen, Spares

torch = pytest.importorskip("torch")
pytest.importorskip("timm")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

MIXUP = """
import torch
from timm.data import Mixup

mixup = Mixup(mixup_alpha=1.0, mode="elem", num_classes=8)
images, labels = torch.randn(16, 3, 32, 32, device="cuda"), torch.randint(0, 8, (16,), device="cuda")
def step():
    mixup(images.clone(), labels)  # here
"""

LOADER = """
import numpy, torch
from timm.data import create_loader

class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 64 * 32
    def __getitem__(self, index):
        return numpy.zeros((3, 224, 224), dtype=numpy.uint8), 0

loader = create_loader(
    Images(), (3, 224, 224), 64, num_workers=0, persistent_workers=False, pin_memory=False, device=torch.device("cuda"),
)
scale = torch.ones((), device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([scale], lr=0.1)
for images, labels in loader:
    (images.mean() * scale).backward()
    optimizer.step()
"""

STEP = """
import torch
from timm.optim import create_optimizer_v2
from timm.utils import ModelEmaV3

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)).to("cuda")
optimizer = create_optimizer_v2(model, opt="adamp", lr=0.1)
average = ModelEmaV3(model, device="cpu")
x = torch.randn(16, 64, device="cuda")
def step():
    model(x).square().mean().backward()
    optimizer.step()
    average.update(model)
"""


def test_factors_of_samples_are_copied_and_one_for_the_batch_is_not(spares: Spares) -> None:
    """`Mixup(mode='batch')` keeps its factor on the host."""
    spares(
        MIXUP,
        ('mode="elem"', 'mode="batch"'),
        rule="timm",
        title="factor of each sample",
        fix="Mixup(mode='batch')",
    )


def test_the_loader_copies_batches_without_a_wait_from_pageable_memory_too(run: Callable[[str], Seen]) -> None:
    """It copies with `non_blocking=True` on a stream of its own."""
    seen = run(LOADER)
    assert not seen.findings, str(seen)


def test_an_average_on_the_model_s_device_is_not_copied(spares: Spares) -> None:
    """One on the CPU is, value by value."""
    program = STEP.replace("average.update(model)", "average.update(model)  # here")
    switch = ('ModelEmaV3(model, device="cpu")', "ModelEmaV3(model, device=None)")
    spares(program, switch, rule="timm", title="is kept on the CPU", fix="ModelEmaV3(model, device=None)")


def test_adamp_asks_for_each_parameter_and_adamw_does_not(spares: Spares) -> None:
    """AdamP projects where the cosine is small."""
    program = STEP.replace("    optimizer.step()", "    optimizer.step()  # here")
    spares(program, ('opt="adamp"', 'opt="adamw"'), rule="timm", title="whether to project", fix="opt='adamw'")
