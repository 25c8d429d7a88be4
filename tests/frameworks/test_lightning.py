"""Lightning: what `self.log` reads and makes, batches, callbacks, and a closure in an optimizer's step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.frameworks.conftest import Seen, Spares

torch = pytest.importorskip("torch")
pytest.importorskip("pytorch_lightning")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROGRAM = """
import torch
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ThroughputMonitor

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1024, 8)
    def training_step(self, batch, index):
        loss = self.layer(batch[0]).square().mean()
        self.log("loss", loss, prog_bar=True)
        self.log("number", 3.0)
        loss.item()
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

data = torch.utils.data.TensorDataset(torch.randn(32 * 1024, 1024))
loader = torch.utils.data.DataLoader(data, batch_size=1024, pin_memory=False)
trainer = pl.Trainer(
    accelerator="cuda", devices=1, max_epochs=1, logger=pl.loggers.CSVLogger("logs"), log_every_n_steps=1,
    enable_checkpointing=False, enable_progress_bar=True, enable_model_summary=False,
    callbacks=[ThroughputMonitor(batch_size_fn=lambda batch: len(batch[0]))],
)
trainer.fit(Model(), loader)  # here
"""


def test_a_value_for_the_bar_is_read_after_each_batch(spares: Spares) -> None:
    """Until `prog_bar=False`."""
    spares(
        PROGRAM,
        ("prog_bar=True", "prog_bar=False"),
        rule="lightning",
        title="to the progress bar",
        fix="self.log(…, prog_bar=False)",
    )


def test_it_is_read_without_a_bar_too(run: Callable[[str], Seen]) -> None:
    """`enable_progress_bar=False` spares the bar's drawing alone."""
    seen = run(PROGRAM.replace("enable_progress_bar=True", "enable_progress_bar=False"))
    result, *_ = seen.of("lightning", "to the progress bar")
    assert "Trainer(enable_progress_bar=False) alone" in result.fix


def test_a_logger_reads_in_steps_that_are_logged(spares: Spares) -> None:
    """With `log_every_n_steps=50`, none of the captured steps is logged."""
    spares(
        PROGRAM,
        ("log_every_n_steps=1,", "log_every_n_steps=50,"),
        ("callbacks=[ThroughputMonitor(batch_size_fn=lambda batch: len(batch[0]))]", "callbacks=[]"),
        rule="lightning",
        title="reads what it logs",
        fix="Trainer(log_every_n_steps=50)",
    )


def test_a_logged_number_is_copied_and_a_filled_tensor_is_not(spares: Spares) -> None:
    """`torch.full` makes it on the device."""
    program = PROGRAM.replace("# here", "").replace('"number", 3.0)', '"number", 3.0)  # here')
    switch = ('"number", 3.0)', '"number", torch.full((), 3.0, device=self.device))')
    spares(
        program,
        switch,
        rule="lightning",
        title="of a Python number",
        fix="self.log(name, torch.full((), value, device=self.device))",
    )


def test_a_batch_is_copied_without_a_wait_where_nothing_is_queued(run: Callable[[str], Seen]) -> None:
    """Lightning's copies have `non_blocking=True`, and the step has read its loss before."""
    seen = run(PROGRAM)
    assert not seen.of("lightning", "from pageable memory"), str(seen)
    assert not seen.of("to-device", ""), str(seen)


def test_a_monitor_of_throughput_waits_for_the_device(spares: Spares) -> None:
    """After every batch, until it is left out."""
    switch = ("callbacks=[ThroughputMonitor(batch_size_fn=lambda batch: len(batch[0]))]", "callbacks=[]")
    spares(PROGRAM, switch, rule="lightning", title="ThroughputMonitor waits", fix="Leave the ThroughputMonitor out")


def test_a_read_in_the_training_step_is_the_program_s(run: Callable[[str], Seen]) -> None:
    """Lightning runs the step as a closure within `Optimizer.step`, whose read it isn't."""
    seen = run(PROGRAM)
    assert not seen.of("optimizer-readback", "")
    assert [f for f in seen.findings if seen.line(f) == "loss.item()" and f.owner == "user"], str(seen)
