"""accelerate: batches copied by a prepared loader."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROGRAM = """
import torch
from accelerate import Accelerator, DataLoaderConfiguration

accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=False))
model = torch.nn.Linear(1024, 8)
data = torch.utils.data.TensorDataset(torch.randn(8192, 1024))
loader = torch.utils.data.DataLoader(data, batch_size=256, pin_memory=True)
model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)
for (x,) in loader:  # here
    accelerator.backward(model(x).square().mean())
    optimizer.step()
    optimizer.zero_grad()
    accelerator.check_trigger()  # and here
"""


def test_pinned_batches_are_copied_without_a_wait(spares: Spares) -> None:
    """With `DataLoaderConfiguration(non_blocking=True)`."""
    switch = ("non_blocking=False", "non_blocking=True")
    spares(
        PROGRAM,
        switch,
        rule="accelerate",
        title="copies the batch",
        fix="Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True))",
    )


def test_a_trigger_is_asked_for_when_the_program_asks(spares: Spares) -> None:
    """Every some steps is enough."""
    program = PROGRAM.replace("# here", "").replace("# and here", "# here").replace("for (x,)", "for n, (x,)")
    program = program.replace("in loader:", "in enumerate(loader):")
    switch = ("    accelerator.check_trigger()", "    if n % 100 == 99: accelerator.check_trigger()")
    spares(program, switch, rule="accelerate", title="set its trigger", fix="every N steps")
