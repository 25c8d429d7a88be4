"""Facts about `syncscan time`."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from syncscan.cli.time import command
from syncscan.errors import UsageError

pytest.importorskip("torch")

SCRIPT = """
import torch
model = torch.nn.Linear(8, 8)
def inputs(batch=1):
    return torch.zeros(batch, 8)
def wrong():
    return torch.zeros(2, 3)
def empty():
    return ()
def infer(x):
    return model(x)
def step():
    return infer(inputs())
if __name__ == "__main__":
    raise SystemExit("the main part must not run")
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    path = tmp_path / "a_timed_script.py"
    path.write_text(SCRIPT)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield path
    sys.modules.pop(path.stem, None)


def run(*arguments):
    fast = ("--device", "cpu", "--repetitions", "3", "--seconds", "0")
    return CliRunner().invoke(command, [*map(str, arguments), *fast], catch_exceptions=False)


def test_a_function_of_a_script_is_timed(script):
    """JSON on stdout; the script's import is one of the costs one-time costs."""
    result = run(f"{script}:step", "--format", "json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["name"] == "step"
    assert document["clock"] == "host"
    assert [o["name"] for o in document["one_offs"]][:2] == ["import", "first call"]


def test_throughput_takes_inputs_of_a_batch_size(script):
    """The best batch is among those tried, and --max-batch is kept."""
    result = run(f"{script}:infer", "--inputs", "inputs", "--throughput", "--max-batch", "4", "--format", "json")
    assert [t["batch"] for t in json.loads(result.stdout)["throughput"]["tried"]] == [1, 2, 4]


def test_an_output_file_is_not_overwritten_unasked(script, tmp_path):
    """`--force` is needed to replace it."""
    out = tmp_path / "timing.json"
    out.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        run(f"{script}:step", "-o", out)
    assert out.read_text() == "mine"
    run(f"{script}:step", "-o", out, "--force")
    assert json.loads(out.read_text())["device"].startswith("CPU")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("{}", "SCRIPT:FUNCTION"),
        ("{}:nothing", "has no function 'nothing'"),
        ("{}:torch", "not a function"),
        ("no.py:x", "no script"),
    ],
)
def test_a_target_that_is_not_there_is_named(script, target, words):
    """One sentence with what is wrong."""
    with pytest.raises(UsageError, match=words):
        run(target.format(script))


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("def step():\n    raise ValueError('mine')\n", "ValueError: mine"),
        ("raise ValueError('mine')\n", "ValueError: mine"),
        ("def step(:\n", "SyntaxError: invalid syntax"),
        (
            "class Step:\n    def __call__(self):\n        return 1 / 0\nstep = Step()\n",
            "ZeroDivisionError: division by zero",
        ),
    ],
    ids=["step", "import", "syntax", "object"],
)
def test_a_function_that_raises_shows_its_own_frames_alone(code, last, script):
    """As if Python had called it; the same for a script that can't be imported."""
    script.write_text(code)
    result = run(f"{script}:step")
    files = [line.split('"')[1] for line in result.stderr.splitlines() if line.startswith("  File ")]
    assert (result.exit_code, set(files)) == (1, {str(script)})
    assert result.stderr.endswith(f"{last}\n")


def test_a_module_that_raises_shows_no_frame_of_ours(script):
    """Torch's own frames are all that there is: the script has none in them."""
    result = run(f"{script}:model", "--inputs", "wrong")
    files = [line.split('"')[1] for line in result.stderr.splitlines() if line.startswith("  File ")]
    assert result.exit_code == 1
    assert files
    assert [file for file in files if "/torch/" not in file] == []


def test_inputs_that_a_function_does_not_take_are_reported(script):
    """By what is missing."""
    with pytest.raises(UsageError, match="'x'"):
        run(f"{script}:infer", "--inputs", "empty")
