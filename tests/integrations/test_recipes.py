"""The recipes of docs/howto/capture.md run as they stand there, on a small model."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import syncscan

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
RECIPES = dict(
    re.findall(
        r"<!-- run: (\w+) -->\n```python\n(.*?)```", (ROOT / "docs/howto/capture.md").read_text(), flags=re.DOTALL
    )
)


def on_a_small_model() -> dict[str, Any]:
    """Define the names that the blocks of single processes use."""
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
    """It has three steps, as the recipe counts steps."""
    if name == "accelerate":
        pytest.importorskip("accelerate")
    monkeypatch.chdir(tmp_path)
    names = on_a_small_model()
    exec(RECIPES[name], names)
    (trace,) = (tmp_path / "syncscan-out").iterdir()
    assert syncscan.analyze(trace).step.count == 3
    assert names["prof"].complete


@pytest.mark.slow
def test_each_rank_of_ddp_writes_its_own(tmp_path: Path) -> None:
    """Two processes with gloo, told of each other as torchrun does it: its launcher would import torch a third time."""
    script = tmp_path / "train.py"
    script.write_text(RECIPES["ddp"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    environment = os.environ | {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"} | world
    ranks = [
        subprocess.Popen(
            [sys.executable, script.name],
            cwd=tmp_path,
            env=environment | {"RANK": rank, "LOCAL_RANK": rank},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in "01"
    ]
    for rank in ranks:
        text = rank.communicate(timeout=240)[1]
        # Seen once: a rank that had done all its work was ended by a thread of C++ that nobody had joined (torch 2.13,
        # its gloo or its profiler; not again in 44 runs with and without a capture).
        ended_late = text.rstrip().endswith("terminate called without an active exception")
        assert rank.returncode == 0 or ended_late, text
    traces = sorted(path.name.split(".")[0] for path in (tmp_path / "syncscan-out").iterdir())
    assert traces == ["train_rank0", "train_rank1"]
