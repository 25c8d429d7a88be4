"""The loop that a program without an optimizer repeats: found, counted, and ended."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.dryrun import program_steps
from syncscan.dryrun.program_steps import Patience

pytest.importorskip("torch")

ENDLESS = """\
import torch
weights = [torch.nn.Parameter(torch.empty(4, 4, device="cuda").normal_()) for _ in range(40)]
for w in weights:
    torch.nn.init.xavier_uniform_(w)
layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(6)).cuda()
class Net(torch.nn.Module):
    def forward(self, x):
        for layer in layers:
            x = layer(x)
        return x
net = Net()
def generate(x):
    for k in range(12):
        x = net(x)
        if x.sum().item() is None:
            break
    return x
while True:
    generate(torch.ones(1, 4, device="cuda")).tolist()
"""


OPTIMIZERS = program_steps.has_optimizer


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count ops alone, which differ on no machine, and leave out optimizers that other tests have left."""
    monkeypatch.setattr(program_steps, "ALONE", Patience(0, 60, math.inf))
    monkeypatch.setattr(program_steps, "BESIDE_OPTIMIZER", Patience(0, 2_000, math.inf))
    monkeypatch.setattr(program_steps, "has_optimizer", lambda: False)


def dryrun(path: Path, source: str, *args: str) -> Any:
    path.write_text(source)
    result = CliRunner().invoke(group, ["dryrun", "--format", "json", *args, str(path)])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def steps(document: Any) -> list[tuple[str, int, float]]:
    found = [f for f in document["findings"] if f["severity"] != "info"]
    return sorted((f["rule"], f["source"]["line"], f["per_step"]) for f in found)


def test_an_endless_program_ends_after_rounds_of_its_loop(tmp_path: Path) -> None:
    """The first that comes round often enough: neither the loop that initializes weights nor that over layers."""
    document = dryrun(tmp_path / "mine.py", ENDLESS)
    assert document["step"]["count"] == 3
    assert ("item", 15, 1.0) in steps(document)
    assert f"Each iteration of the loop at {tmp_path / 'mine.py'}:13 is a step." in document["dry_run"]["notes"]


@pytest.mark.slow
def test_the_outer_loop_is_the_step_if_it_comes_round_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of its inner rounds are in it."""
    monkeypatch.setattr(program_steps, "ALONE", Patience(0, 2_000, math.inf))
    document = dryrun(tmp_path / "mine.py", ENDLESS, "--steps", "2")
    assert document["step"]["count"] == 2
    assert steps(document) == [("item", 15, 12.0), ("tolist", 19, 1.0)]


def test_a_program_that_ends_first_has_no_steps(tmp_path: Path) -> None:
    """Its counts are those of the whole run."""
    document = dryrun(tmp_path / "mine.py", ENDLESS.replace("while True", "for _ in range(1)").replace("12", "3"))
    assert (document["step"]["count"], [s for s in steps(document) if s[0] == "item"]) == (0, [("item", 15, 3)])


def test_a_rollout_before_the_first_optimizer_step_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An optimizer that exists may step yet."""
    monkeypatch.setattr(program_steps, "has_optimizer", OPTIMIZERS)
    trained = ENDLESS.replace("while True:\n", "optimizer = torch.optim.SGD(layers.parameters())\nwhile True:\n")
    trained += "    net(torch.ones(1, 4, device='cuda')).sum().backward()\n    optimizer.step()\n"
    document = dryrun(tmp_path / "mine.py", trained)
    assert document["step"]["count"] == 3
    assert ("item", 15, 12.0) in steps(document)


def test_what_catches_the_stop_is_stopped_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, in which a program may clean up."""
    monkeypatch.setattr(program_steps, "AGAIN", 20)
    caught = ENDLESS.replace(
        '    generate(torch.ones(1, 4, device="cuda")).tolist()\n',
        "    try:\n        generate(torch.ones(1, 4, device='cuda'))\n    except BaseException:\n        break\n"
        "while True:\n    net(torch.ones(1, 4, device='cuda'))\n",
    )
    assert dryrun(tmp_path / "mine.py", caught)["step"]["count"] == 3


def test_what_catches_every_stop_is_left_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that catches all ends after its rounds, which then do nothing but fail."""
    monkeypatch.setattr(program_steps, "AGAIN", 100)
    rounds, stops = program_steps.ProgramRounds(lambda: 0, lambda loop: None, lambda: None), []
    rounds.stop_again(lambda: stops.append(True))
    after = []
    for _ in range(114):
        rounds.look(None, "add")
        after.append(len(stops))
    assert (after[98], after[99], after[108], after[109:]) == (0, 1, 1, [2, 3, 4, 5, 6])
