"""`syncscan dryrun`: scripts and functions, their steps, exit codes and streams."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.errors import UsageError
from tests.schemas import wrong

pytest.importorskip("torch")

SAMPLES = Path(__file__).parents[2] / "sample_traces"
FUNCTION = """\
import torch
x = torch.ones(4, device="cuda")
x.sum().item()
def step():
    print("a step")
    return x[x > 0]
"""
SCRIPT = """\
import sys, torch
net = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(net.parameters())
for k in range(1000):
    loss = net(torch.ones(1, 2, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    print(k, loss.item())
sys.exit(3)
"""


def dryrun(*args: str, code: int = 0) -> Any:
    """The findings in the steps, as (rule, line, times per step), and all of the command's JSON."""
    result = CliRunner().invoke(group, ["dryrun", "--format", "json", *args])
    assert result.exit_code == code, result.output
    document = json.loads(result.stdout)
    assert wrong("analysis", result.stdout) == []
    inside = [f for f in document["findings"] if f["severity"] != "info"]
    return [(f["rule"], f["source"]["line"], f["per_step"]) for f in inside], document


def test_a_function_is_called_once_a_step(tmp_path: Path) -> None:
    """The module's code before it is preparation; its output doesn't mix with the report."""
    (tmp_path / "mine.py").write_text(FUNCTION)
    result, document = dryrun("--steps", "2", f"{tmp_path / 'mine.py'}:step")
    assert (result, document["step"]["count"]) == ([("boolean-index", 6, 1.0)], 2)


def test_the_lines_shown_are_those_that_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is never newer than its dry run, whose clock only counts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FUNCTION)
    shown = CliRunner().invoke(group, ["dryrun", "-v", "--steps", "1", "mine.py:step"]).stdout
    assert "return x[x > 0]" in shown
    assert "written after" not in shown


@pytest.mark.slow
def test_a_dry_run_leads_to_a_fix_of_that_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its arguments, as typed; to a capture if nothing waits, of SCRIPT where it can't call the function."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["syncscan"])
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    monkeypatch.setitem(__import__("sys").modules, "__main__", __import__("sys").modules["__main__"])
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "clean.py").write_text(SCRIPT.replace("print(k, loss.item())", "pass"))
    (tmp_path / "called.py").write_text("import torch\ndef step(): torch.ones(2, device='cuda').add(1)")
    script, clean, called = (
        CliRunner().invoke(group, ["dryrun", "--steps", "1", *words]).stdout.partition("Next   ")[2].splitlines()[0]
        for words in (["train.py", "--name", "a b"], ["clean.py"], ["called.py:step"])
    )
    assert script == "syncscan fix train.py --name 'a b'"
    assert clean == "syncscan profile clean.py"
    assert called == "syncscan profile SCRIPT"


def test_a_script_ends_after_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is an optimizer's; the script is left as it is and doesn't reach its own end."""
    monkeypatch.setattr("sys.argv", ["syncscan"])
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    monkeypatch.setitem(__import__("sys").modules, "__main__", __import__("sys").modules["__main__"])
    (tmp_path / "train.py").write_text(SCRIPT)
    result, document = dryrun("--steps", "2", str(tmp_path / "train.py"))
    assert (result, document["step"]["count"]) == ([("item", 8, 1.0)], 2)


SHORT = """\
import sys, torch
net = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(net.parameters())
def train(steps):
    for k in range(steps):
        loss = net(torch.ones(1, 2, device="cuda")).sum()
        torch.cuda.synchronize()
        loss.backward()
        optimizer.step()
        print(k, loss.item())
train(int(sys.argv[1]))
print(net.weight.tolist())
"""


@pytest.mark.parametrize("steps", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 5))])
def test_each_step_of_a_short_run_counts(tmp_path: Path, steps: int) -> None:
    """The first has all that waits before the optimizer's call, the last all that waits after it."""
    (tmp_path / "short.py").write_text(SHORT)
    result, document = dryrun(str(tmp_path / "short.py"), str(steps))
    assert (sorted(result), document["step"]["count"]) == ([("explicit-sync", 7, 1), ("item", 10, 1)], min(steps, 3))
    assert {f["source"]["line"] for f in document["findings"] if f["severity"] == "info"} - {12} == {2}


@pytest.mark.parametrize("place", ["if k == 1: sys.exit()", "if k == 1: loss.tolist(), sys.exit()"])
def test_a_step_that_is_not_ended_does_not_count(tmp_path: Path, place: str) -> None:
    """The program ended in its second one; what waits there and nowhere else isn't lost."""
    (tmp_path / "short.py").write_text(SHORT.replace("optimizer.step()", f"{place}\n        optimizer.step()"))
    result, document = dryrun(str(tmp_path / "short.py"), "3")
    waits = [("item", 11, 1), *([("tolist", 9, 1)] if "tolist" in place else [])]
    assert [row for row in sorted(result) if row[0] != "explicit-sync"] == waits
    assert document["step"]["count"] == 1
    assert ("explicit-sync", 7, 2 if "tolist" in place else 1) in result


MICRO = """import torch
net = torch.nn.Linear(2, 2).cuda()
optimizers = [torch.optim.SGD([p]) for p in net.parameters()]
def step():
    for k in range(10):
        loss = net(torch.ones(1, 2, device="cuda")).sum()
        loss.backward()
        loss.item()
    torch.cuda.synchronize()
    for optimizer in optimizers:
        optimizer.step()
step()
"""


@pytest.mark.slow
def test_a_step_of_micro_batches_holds_them_all(tmp_path: Path) -> None:
    """Where no loop is around the optimizer, or one over optimizers only, that around the backward pass counts."""
    (tmp_path / "micro.py").write_text(MICRO)
    result, document = dryrun("--fail-on", "sync", str(tmp_path / "micro.py"), code=1)
    assert (sorted(result), document["step"]["count"]) == ([("explicit-sync", 9, 1), ("item", 8, 10)], 1)


STRAIGHT = """import torch
net = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(net.parameters())
loss = net(torch.ones(1, 2, device="cuda")).sum()
loss.backward()
loss.item()
optimizer.step()
"""


def test_a_single_step_without_a_loop_begins_with_its_forward_pass(tmp_path: Path) -> None:
    """Preparation is all that comes before."""
    (tmp_path / "straight.py").write_text(STRAIGHT)
    result, document = dryrun(str(tmp_path / "straight.py"))
    assert (result, document["step"]["count"]) == ([("item", 6, 1)], 1)


SCOPED = """\
import contextlib, sys, torch
net = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(net.parameters())
def scope(name):
    return torch.profiler.record_function(name) if name in sys.argv else contextlib.nullcontext()
with scope("epoch"):
    for k in range(int(sys.argv[1])):
        with scope("step"):
            loss = net(torch.ones(1, 2, device="cuda")).sum()
            torch.cuda.synchronize()
            loss.backward()
            optimizer.step()
            loss.item()
"""


@pytest.mark.parametrize("steps", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 9))])
@pytest.mark.parametrize("scopes", [["epoch"], ["step"], ["epoch", "step"]])
def test_scopes_around_and_within_the_steps_keep_them_apart(tmp_path: Path, steps: int, scopes: list[str]) -> None:
    """A range around the loop holds all steps; one that the loop opens lies in its step."""
    (tmp_path / "scoped.py").write_text(SCOPED)
    _, document = dryrun(str(tmp_path / "scoped.py"), str(steps), *scopes)
    inside = [f for f in document["findings"] if f["severity"] != "info"]
    assert sorted((f["rule"], f["scope"], f["per_step"]) for f in inside) == [
        ("explicit-sync", scopes, 1),
        ("item", scopes, 1),
    ]


def test_waits_outside_of_the_steps_are_not_nothing(tmp_path: Path) -> None:
    """The verdict says where nothing would block, as the table has what does."""
    (tmp_path / "straight.py").write_text(STRAIGHT.replace("loss.item()\n", ""))
    shown = CliRunner().invoke(group, ["dryrun", str(tmp_path / "straight.py")]).stdout
    assert "Nothing in the steps would block the host." in shown


def test_a_function_that_fails_is_reported_so_far(tmp_path: Path) -> None:
    """The exit code says that it failed, and the waits before that stand in the report."""
    (tmp_path / "broken.py").write_text(FUNCTION + "    raise ValueError\n" + "def fails():\n    step()\n    1 / 0\n")
    result, _ = dryrun(f"{tmp_path / 'broken.py'}:fails", code=1)
    assert ("boolean-index", 6, 1.0) in result


EARLY = """\
import torch
embedding = torch.nn.Embedding(10, 8).to("cuda")
linear = torch.nn.Linear(8, 10).to("cuda")
raise ValueError
"""


def test_a_program_that_fails_before_its_first_step_has_none(tmp_path: Path) -> None:
    """Three copies in a row are no three steps, and no rate is made of them."""
    (tmp_path / "early.py").write_text(EARLY)
    result, document = dryrun(str(tmp_path / "early.py"), code=1)
    assert (sorted(result), document["step"]["count"]) == ([("to-device", 2, 1.0), ("to-device", 3, 2.0)], 0)
    shown = CliRunner().invoke(group, ["dryrun", str(tmp_path / "early.py")]).stdout
    assert "2 places would block the host, 3 times." in shown
    assert "a step" not in shown


SWALLOWS = """\
import torch
x = torch.ones(4, device="cuda")
net = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(net.parameters())
while True:
    try:
        net(x).sum().backward()
        optimizer.step()
        x.sum().item()
    except:
        pass
"""


@pytest.mark.slow
def test_a_program_that_catches_all_that_ends_it_is_ended(tmp_path: Path) -> None:
    """Its report is whole: three steps of one wait."""
    (tmp_path / "mine.py").write_text(SWALLOWS)
    result, document = dryrun(str(tmp_path / "mine.py"))
    assert (result, document["step"]["count"]) == ([("item", 9, 1.0)], 3)


@pytest.mark.parametrize("script", ["gone.py", "gone.py:step"])
def test_a_file_that_is_not_there_is_an_error(script: str) -> None:
    """One sentence, before anything runs."""
    result = CliRunner().invoke(group, ["dryrun", script])
    assert isinstance(result.exception, UsageError)
    assert "gone.py" in str(result.exception)


def test_a_report_says_that_the_program_failed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import torch\ntorch.ones(2, device='cuda').sum().item()\n1 / 0\n")
    _, document = dryrun(str(tmp_path / "mine.py"), code=1)
    assert document["dry_run"]["notes"][0] == "The program failed, so the rest of it wasn't seen."


ROLLOUT = """\
import torch
class Env:
    def step(self, action):
        return action * 2.0
def evaluate(net):
    with torch.no_grad():
        return net(torch.ones(2, 4, device="cuda")).sum().item()
def main():
    envs, net = Env(), torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters())
    for iteration in range(100):
        for step in range(16):
            action = net(torch.ones(2, 4, device="cuda")).argmax(1)
            rewards = envs.step(action.cpu().numpy())
            done = torch.tensor(rewards).to("cuda"), torch.tensor(rewards).to("cuda")
        for start in range(4):
            if start == 0:
                evaluate(net)
            loss = net(torch.ones(2, 4, device="cuda")).sum()
            loss.item()
            loss.backward()
            optimizer.step()
        print(loss.item())
main()
"""


def between(report: Any) -> list[tuple[str, str, int, int, float | None, float | None]]:
    """The phases of a run: kind, name, lines, rounds, and after how many steps each comes again."""
    return [
        (phase["kind"], phase["name"], phase["first"], phase["last"], phase["rounds"], phase["every"])
        for phase in report["run"]["phases"]
    ]


def waits(phase: Any) -> list[tuple[str, int, float]]:
    """Rule, line and how often a round, of each of a phase's findings."""
    return sorted((f["rule"], f["source"]["line"], f["per_step"]) for f in phase["findings"])


def test_what_comes_before_the_first_step_in_a_loop_around_it_is_a_phase(tmp_path: Path) -> None:
    """The rollout comes again, though not within three steps: its waits are by its rounds, and none is of a step."""
    (tmp_path / "mine.py").write_text(ROLLOUT)
    result, document = dryrun(str(tmp_path / "mine.py"))
    assert result == [("item", 20, 1.0), ("to-device", 15, 2.0), ("cpu", 14, 1.0), ("item", 7, 1.0)]
    assert [f["source"]["line"] for f in document["findings"] if f["severity"] == "info"] == [9]
    assert between(document) == [
        ("rollout", "rollout", 12, 15, 16, None),
        ("validation", "validation", 18, 18, None, None),
    ]
    assert waits(document["run"]["phases"][0]) == [("cpu", 14, 1.0), ("to-device", 15, 2.0)]
    assert (document["run"]["mean_us"], document["run"]["phases"][0]["share"]) == (None, None)


@pytest.mark.slow
def test_phases_come_again_after_so_many_steps(tmp_path: Path) -> None:
    """Where the run is long enough to see it."""
    (tmp_path / "mine.py").write_text(ROLLOUT)
    result, document = dryrun("--steps", "12", str(tmp_path / "mine.py"))
    between_steps = [("to-device", 15, 2.0), ("cpu", 14, 1.0), ("item", 7, 1.0), ("item", 23, 1.0)]
    assert result == [("item", 20, 1.0), *between_steps]
    assert between(document) == [
        ("rollout", "rollout", 12, 15, 16, 4),
        ("validation", "validation", 18, 18, None, 4),
        ("other work", "other work", 23, 23, None, 4),
    ]


@pytest.mark.slow
def test_a_report_shows_what_lies_between_the_steps(tmp_path: Path) -> None:
    """In text with how often a round; where a format has no part for it, among the findings."""
    (tmp_path / "mine.py").write_text(ROLLOUT)
    first = CliRunner().invoke(group, ["dryrun", str(tmp_path / "mine.py")]).stdout
    assert "The program also repeats work between its steps: rollout (mine.py:12-15" in " ".join(first.split())
    shown = CliRunner().invoke(group, ["dryrun", "-v", str(tmp_path / "mine.py")]).stdout
    assert re.search(r"rollout +mine\.py:12-15 +2 places would block the host, 16 rounds each time", shown)
    lines = CliRunner().invoke(group, ["dryrun", "--format", "csv", str(tmp_path / "mine.py")]).stdout
    assert [row for row in lines.splitlines() if "to-device" in row and ",15," in row]


@pytest.mark.slow
def test_steps_alone_make_no_phases(tmp_path: Path) -> None:
    """The script's preparation before its loop is no phase."""
    (tmp_path / "mine.py").write_text(SCRIPT)
    _, document = dryrun(str(tmp_path / "mine.py"))
    assert document["run"] is None


@pytest.mark.slow
def test_options_behind_the_script_are_noted(tmp_path: Path) -> None:
    """They are the script's; a note says so of those that are named as options of the command, but behind `--`."""
    script = tmp_path / "train.py"
    script.write_text("import sys\nprint(sys.argv[1:], file=sys.stderr)\n")
    words = ["dryrun", str(script), "--format", "html", "--lr=3", "-o", "x.html"]
    result = subprocess.run([sys.executable, "-m", "syncscan", *words], capture_output=True, text=True)
    assert f"note: --format, -o went to {script}, like everything after it." in result.stderr
    assert "['--format', 'html', '--lr=3', '-o', 'x.html']" in result.stderr
    assert "note:" not in CliRunner().invoke(group, ["dryrun", str(script), "--lr", "3"]).stderr
    assert "note:" not in CliRunner().invoke(group, ["dryrun", str(script), "--", "--steps", "3"]).stderr
