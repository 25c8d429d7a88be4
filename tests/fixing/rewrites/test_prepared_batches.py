"""Batches that accelerate copies; neither it nor transformers is among syncscan's dependencies."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from syncscan.fixing.rewrites.settings import prepared_batches
from tests.fixing.example import Rewritten

pytest.importorskip("accelerate")

REWRITE = prepared_batches
IMPORT = "from accelerate import Accelerator\n"
DATA = "data = torch.utils.data.TensorDataset(torch.arange(32.0).reshape(8, 4))\n"
LOADER = "loader = torch.utils.data.DataLoader(data, batch_size=2)\n"
PINNED = "loader = torch.utils.data.DataLoader(data, batch_size=2, pin_memory=torch.cuda.is_available())\n"
MADE = "accelerator = Accelerator()\n"
CONFIGURED = "accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True))\n"
LOOP = (
    "loader = accelerator.prepare(loader)\ntotal = torch.zeros((), device=device)\n"
    "for (batch,) in loader:\n    total += batch.sum()\n"
)
TRAINER = """\
from transformers import PrinterCallback, Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels=None):
        return {"loss": self.layer(x).square().mean()}
arguments = TrainingArguments("out", max_steps=4, save_strategy="no", report_to=[], disable_tqdm=True)
items = [{"x": torch.ones(4) * k, "labels": k} for k in range(64)]
trainer = Trainer(model=Model(), args=arguments, train_dataset=items)
trainer.pop_callback(PrinterCallback)
trainer.train()
total = trainer.model.layer.bias.detach()
"""
END = "\nresult = total.tolist()"
BOTH = IMPORT.replace("Accelerator", "Accelerator, DataLoaderConfiguration")
GIVEN = "settings = DataLoaderConfiguration({})\naccelerator = Accelerator(dataloader_config=settings)\n"
FIXED = {
    f"{BOTH}{DATA}{LOADER}{GIVEN.format('even_batches=True')}{LOOP}": (
        f"{BOTH}{DATA}{PINNED}{GIVEN.format('even_batches=True, non_blocking=True')}{LOOP}"
    ),
    f"{IMPORT}{DATA}{LOADER}{MADE}{LOOP}": (
        f"{IMPORT.replace('Accelerator', 'Accelerator, DataLoaderConfiguration')}{DATA}{PINNED}{CONFIGURED}{LOOP}"
    ),
    f"import accelerate\n{DATA}{LOADER}{MADE.replace('Acc', 'accelerate.Acc')}{LOOP}": (
        f"import accelerate\n{DATA}{PINNED}"
        f"{CONFIGURED.replace('Acc', 'accelerate.Acc').replace('DataLoaderC', 'accelerate.DataLoaderC')}{LOOP}"
    ),
}
KEPT = {
    "the author turned pinning off": f"{IMPORT}{DATA}{LOADER.replace('=2', '=2, pin_memory=False')}{MADE}{LOOP}",
    "it is configured": (
        f"{IMPORT.replace('Accelerator', 'Accelerator, DataLoaderConfiguration')}{DATA}{LOADER}"
        f"{CONFIGURED.replace('True', 'False')}{LOOP}"
    ),
    "two may be meant": f"{IMPORT}{DATA}{LOADER}{MADE}{MADE}{LOOP}",
    "arguments that aren't written there": (
        f"{IMPORT}{DATA}given = {{'batch_size': 2}}\n{LOADER.replace('batch_size=2', '**given')}{MADE}{LOOP}"
    ),
}
if find_spec("transformers"):
    FIXED[TRAINER] = TRAINER.replace(
        "disable_tqdm=True", 'disable_tqdm=True, accelerator_config={"non_blocking": True}'
    )
    KEPT["the Trainer's batches aren't pinned"] = TRAINER.replace(
        "disable_tqdm=True", "disable_tqdm=True, dataloader_pin_memory=False"
    )


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name] + END


def test_pinning_that_is_turned_off_is_named(programs: dict[str, Rewritten]) -> None:
    """With the argument that the author may change."""
    (why,) = programs["the author turned pinning off"].left
    assert why.endswith("the program gives pin_memory=False")
