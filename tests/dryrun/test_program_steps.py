"""The loop that a program without an optimizer repeats: found, counted, and ended, by the frames that move."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.dryrun import program_steps
from syncscan.dryrun.program_steps import Patience, RunningFrames

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


class Seen:
    """Looks at the frames of the functions that call it, and keeps what moved."""

    def __init__(self) -> None:
        self.frames = RunningFrames()
        self.moves: list[tuple[FrameType, int, int] | None] = []

    def __call__(self) -> None:
        self.moves.append(self.frames.look(sys._getframe(1)))

    @property
    def functions(self) -> list[str]:
        """The function that moved at each look but the first."""
        return [move[0].f_code.co_name if move else "" for move in self.moves[1:]]

    @property
    def back(self) -> list[bool]:
        """Whether it went back, or stayed, at each look but the first."""
        return [move is not None and move[2] <= move[1] for move in self.moves[1:]]


def inner(seen: Seen) -> None:
    seen()
    seen()


def outer(seen: Seen) -> None:
    for _ in range(2):
        inner(seen)


def looks(seen: Seen) -> Iterator[int]:
    while True:
        seen()
        yield 0


def test_the_innermost_frame_that_ran_before_has_moved() -> None:
    """Within a call it is the function itself; when that was left and entered again, its caller, which went back."""
    seen = Seen()
    outer(seen)
    assert seen.functions == ["inner", "outer", "inner"]
    assert seen.back == [False, True, False]


def test_a_generator_that_another_line_resumes_is_not_its_loop() -> None:
    """Its frame is the same one, but its caller has moved on."""
    seen = Seen()
    values = looks(seen)
    next(values)
    next(values)
    assert seen.functions == ["test_a_generator_that_another_line_resumes_is_not_its_loop"]
    assert seen.back == [False]


def test_a_generator_that_one_line_resumes_goes_round() -> None:
    seen = Seen()
    for _ in zip(range(3), looks(seen), strict=False):
        pass
    assert seen.functions == ["looks"] * 2
    assert seen.back == [True] * 2


def test_what_runs_in_a_constructor_sets_a_network_up() -> None:
    """Also what it calls; not what runs after it."""
    states = []

    class Net:
        def __init__(self) -> None:
            self.fill()

        def fill(self) -> None:
            seen()
            states.append(seen.frames.set_up)

    seen = Seen()
    Net()
    seen()
    assert [*states, seen.frames.set_up] == [True, False]
