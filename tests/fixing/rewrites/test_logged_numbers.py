"""Numbers and values for a hidden bar that Lightning logs; it isn't among syncscan's dependencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.fixing.rewrites import library_settings, logged_numbers
from syncscan.fixing.runs import Runs
from tests.fixing.example import Rewritten, rewrite

pytest.importorskip("lightning")

PROGRAM = """\
import lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        loss = self.layer(batch[0]).square().mean()
        self.log("loss", loss, prog_bar=True)
        self.log("index", index)
        self.log_dict({"rate": 0.5, "double": loss * 2})
        return loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(8, 4) / 32)
loader = torch.utils.data.DataLoader(data, batch_size=2)
trainer = lightning.Trainer(accelerator="cuda", devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, barebones=False)
trainer.fit(Model(), loader)
result = sorted((name, value.item()) for name, value in trainer.callback_metrics.items())"""
COPIED = "torch.tensor({}, dtype=torch.get_default_dtype()).to(self.device, non_blocking=True)"
NUMBERS = PROGRAM.replace('"index", index', f'"index", {COPIED.format("index")}').replace(
    '"rate": 0.5', f'"rate": {COPIED.format(0.5)}'
)
HIDDEN = PROGRAM.replace("prog_bar=True", "prog_bar=False")
DRAWN = PROGRAM.replace("enable_progress_bar=False", "enable_progress_bar=True")
READ = f"{PROGRAM}\nshown = trainer.progress_bar_metrics"


@pytest.fixture(scope="module")
def numbers(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Rewritten:
    """The program with its numbers copied."""
    return rewrite(runs, tmp_path_factory.mktemp("numbers"), logged_numbers, {"": PROGRAM})[""]


def test_logged_numbers_are_copied_without_waiting(numbers: Rewritten) -> None:
    """The logged values are equal, and tensors that are logged stay as they are."""
    assert numbers.text == NUMBERS
    assert numbers.waits[1] <= numbers.waits[0] - 6
    assert numbers.results[0] == numbers.results[1]


def test_values_for_a_hidden_bar_are_not_read(runs: Runs, tmp_path: Path) -> None:
    """Only if the Trainer draws no bar, and nothing asks for the bar's values."""
    programs = {"hidden": PROGRAM, "drawn": DRAWN, "read": READ}
    results = rewrite(runs, tmp_path, library_settings, programs)
    assert {name: result.text for name, result in results.items()} == {"hidden": HIDDEN, "drawn": DRAWN, "read": READ}
    assert results["hidden"].waits[1] < results["hidden"].waits[0]
    assert results["hidden"].results[0] == results["hidden"].results[1]
