"""The trainers' callbacks record the steps that they are asked for, of real runs; without the library they skip."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from syncscan.errors import UsageError
from syncscan.integrations.run_steps import RunSteps

torch = pytest.importorskip("torch")
QUIET: dict[str, Any] = {"notify": lambda sentence: None, "name": "run"}


class Loss:
    """The loss of a small model, which marks in the trace which step it is asked for."""

    def __init__(self) -> None:
        self.calls = 0
        self.layer = torch.nn.Linear(4, 1)

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        with torch.profiler.record_function(f"step {self.calls}"):
            return self.layer(x).square().mean()


def recorded(path: Path) -> list[int]:
    """Which steps a trace holds, by the model's own marks."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    names = [event["name"] for event in events if event.get("cat") == "user_annotation"]
    return sorted({int(name.split()[1]) for name in names if name.startswith("step ")})


@pytest.mark.parametrize(("first", "last"), [(1, 2), (3, 3), (6, 8), (19, 20), (25, 26)])
def test_just_these_steps_are_recorded(first: int, last: int, tmp_path: Path) -> None:
    """However many steps a capture can run before them."""
    steps, loss = RunSteps(first, last, tmp_path, **QUIET), Loss()
    steps.begin()
    for _ in range(30):
        loss(torch.ones(2, 4)).backward()
        steps.step()
    steps.end()
    assert recorded(steps.paths[-1]) == list(range(first, last + 1))
    assert steps.analysis.step.count == last - first + 1


def test_a_resumed_run_goes_on_counting(tmp_path: Path) -> None:
    """Behind the steps of the run before; one that is past them records nothing."""
    steps, loss = RunSteps(12, 13, tmp_path, **QUIET), Loss()
    loss.calls = 8
    steps.begin(8)
    for _ in range(8):
        loss(torch.ones(2, 4))
        steps.step()
    steps.end()
    assert recorded(steps.paths[-1]) == [12, 13]
    late = RunSteps(3, 4, tmp_path, **QUIET)
    late.begin(8)
    late.step()
    late.end()
    with pytest.raises(UsageError, match="Steps 3 to 4 weren't recorded"):
        _ = late.analysis


@pytest.mark.parametrize(("first", "last", "more"), [(0, 1, {}), (3, 2, {}), (1, 2, {"warmup": 1})])
def test_steps_that_are_none_are_refused(first: int, last: int, more: dict[str, int]) -> None:
    """With a sentence."""
    with pytest.raises(UsageError):
        RunSteps(first, last, **more)


@pytest.mark.parametrize("accumulated", [1, 2])
def test_transformers(tmp_path: Path, accumulated: int) -> None:
    """Steps are the optimizer's, whatever is accumulated for one."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from syncscan.integrations.transformers import CaptureCallback

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.loss = Loss()
            self.layer = self.loss.layer

        def forward(self, x: Any, **more: Any) -> Any:
            return {"loss": self.loss(x)}

    data = [{"x": torch.ones(4)} for _ in range(64)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=12,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=accumulated,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    callback = CaptureCallback(8, 9, tmp_path, **QUIET)
    transformers.Trainer(Model(), arguments, train_dataset=data, callbacks=[callback]).train()
    requested = range(7 * accumulated + 1, 9 * accumulated + 1)
    assert recorded(callback.steps.paths[-1]) == list(requested)
    assert callback.analysis.step.count == 2


@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path: Path) -> None:
    """The batches asked for, and not those one later."""
    lightning = pytest.importorskip("lightning.pytorch")
    from syncscan.integrations.lightning import CaptureCallback

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.loss = Loss()
            self.layer = self.loss.layer

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.loss(batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    callback = CaptureCallback(8, 9, tmp_path, **QUIET)
    trainer = lightning.Trainer(
        max_steps=12,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback],
        default_root_dir=tmp_path,
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(64, 4), 2))
    assert recorded(callback.steps.paths[-1]) == [8, 9]
    assert callback.analysis.step.count == 2
