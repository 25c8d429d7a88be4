"""The function that a call runs is named where the file or its run shows it, and unknown elsewhere."""

from __future__ import annotations

import ast

import pytest

from syncscan.fixing.flow import callees
from syncscan.fixing.messages import ProgramJob
from syncscan.fixing.program_file import File
from syncscan.fixing.runs import Runs
from syncscan.source.text import read
from tests.each import each

PROGRAM = """\
import functools, torch
import torch.nn.functional as F
from torch import nn
from other import changed
class Net(nn.Module):
    def __init__(self, hook):
        super().__init__()
        self.inner, self.error, self.hook = nn.Linear(2, 2), nn.MSELoss(), hook
    def forward(self, x):
        return self.error(x, x) + x.sum()
def run(loss_fn, bound, net, never=None):
    x = torch.ones(2)
    loss_fn(x, x)
    bound(x)
    net(x)
    net.eval()
    net.hook(x)
    F.relu(x)
    changed(x)
    len(x)
    if never is not None:
        never(x)
        never.close()
        x.mul_(2)
run(F.mse_loss, functools.partial(changed), Net(changed))
"""
NAMES = {
    "super": "builtins.super",
    "error": "torch.nn.modules.loss.MSELoss.__call__",
    "sum": "torch.Tensor.sum",
    "ones": "torch.ones",
    "loss_fn": "torch.nn.functional.mse_loss",
    "partial": "functools.partial",
    "bound": "",
    "net": callees.OWN,
    "eval": "torch.nn.Module.eval",
    "hook": "other.changed",
    "relu": "torch.nn.functional.relu",
    "changed": "other.changed",
    "len": "builtins.len",
    "never": "",
    "close": "",
    "mul_": "",
    "run": callees.OWN,
    "Net": callees.OWN,
}
"""A function's name as it is written → what its calls run; empty for anything."""


@pytest.fixture(scope="module")
def file(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> File:
    folder = tmp_path_factory.mktemp("called")
    (folder / "other.py").write_text("def changed(x):\n    return x\n")
    path = folder / "program.py"
    path.write_text(PROGRAM)
    run = runs.run(ProgramJob(target=str(path), arguments=[], probed=[str(path)]))
    assert run.code == 0, run.errors
    return File(read(str(path)), run.observed[str(path)], main=True)


@each("written", NAMES)
def test_a_call_is_named(file: File, written: str) -> None:
    """By imports and definitions where these tell, else by what the run saw."""
    calls = [n for n in file.nodes if isinstance(n, ast.Call)]
    (call, *_) = [n for n in calls if written in (getattr(n.func, "id", ""), getattr(n.func, "attr", ""))]
    assert callees.names(file, call) == ({NAMES[written]} if NAMES[written] else set())


def test_the_program_s_own_files_are_no_libraries() -> None:
    """Their functions may know any object of the program."""
    known = ["torch.relu", "json.dumps", "list.append", "builtins.len"]
    assert [callees.is_of_library(name) for name in [*known, "other.changed", "hook"]] == [True] * 4 + [False] * 2
