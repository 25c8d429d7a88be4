"""The recipes of docs/trainers.md run as they stand there, on a small model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import syncscan

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
RECIPES = dict(
    re.findall(r"<!-- run: (\w+) -->\n```python\n(.*?)```", (ROOT / "docs/trainers.md").read_text(), flags=re.DOTALL)
)


def on_a_small_model() -> dict[str, Any]:
    """What the blocks of single processes find already there."""
    model = torch.nn.Linear(8, 8)
    loader = torch.utils.data.DataLoader(torch.ones(200, 8), 2)
    return {
        "torch": torch,
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), 0.1),
        "loader": loader,
        "batches": iter(loader),
        "steps": 50,
        "accumulated": 2,
    }


@pytest.mark.parametrize("name", ["accelerate", "loop"])
@pytest.mark.filterwarnings("ignore:No GPU here")
def test_a_recipe_writes_a_trace(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three steps, by its own count of what a step is."""
    if name == "accelerate":
        pytest.importorskip("accelerate")
    monkeypatch.chdir(tmp_path)
    names = on_a_small_model()
    exec(RECIPES[name], names)
    (trace,) = (tmp_path / "syncscan-out").iterdir()
    assert syncscan.analyze(trace).step.count == 3
    assert names["prof"].complete


def test_each_rank_of_ddp_writes_its_own(tmp_path: Path) -> None:
    """Two processes with gloo."""
    script = tmp_path / "train.py"
    script.write_text(RECIPES["ddp"])
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script.name]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    traces = sorted(path.name.split(".")[0] for path in (tmp_path / "syncscan-out").iterdir())
    assert traces == ["train_rank0", "train_rank1"]
