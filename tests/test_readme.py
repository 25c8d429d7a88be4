"""What the README says is true: its commands run, and its generated parts are what the program says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import syncscan
from syncscan.capture.calibration import StepTimes
from syncscan.cli import group

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = [line[2:] for block in re.findall(r"```console\n(.*?)```", README, re.S) for line in block.splitlines()
           if line.startswith("$ ")]  # fmt: skip
ELSEWHERE = {"make demo", "make test", "make lint", "make bench", "pip install '.[all]'"}
"""Commands that continuous integration itself runs, or that install."""
SERVERS = re.compile(r"syncscan open .*")
"""Commands that serve until they are stopped; tests/browser runs them."""

TRAIN = """
import torch
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    loss = model(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def infer():
    return model(torch.randn(16, 8))
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder as the README's reader has it: a training script and the sample traces."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    return tmp_path


PROGRAMS = ("profile", "dryrun", "time")
"""Commands that run the reader's program, and so have a process of their own here too."""
OVER = {c for c in CONSOLE if c.startswith("syncscan check ") and "--limit" in c}
"""What shows a limit that isn't kept exits 1."""


def run(*words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in this process."""
    result = CliRunner().invoke(group, words)
    return result.exit_code, result.stdout, result.stderr


def started(*words: str) -> tuple[int, str, str]:
    """The same in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "syncscan", *words], capture_output=True, text=True, timeout=240)
    return done.returncode, done.stdout, done.stderr


HERE = [c for c in CONSOLE if c not in ELSEWHERE and not SERVERS.fullmatch(c)]
COMMANDS = {re.sub(r"(train\.py) --epochs .*", r"\1", c): c for c in HERE}
"""What differs in the script's own arguments alone is run once."""


@pytest.mark.parametrize("command", COMMANDS.values())
def test_command_works(command: str, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of the README ends as it says, leaves something on stdout or says on stderr what it wrote."""
    monkeypatch.chdir(desk)
    program, *words = shlex.split(command)
    assert program == "syncscan", f"only syncscan's own commands belong into a console block: {command}"
    code, out, err = (started if words[0] in PROGRAMS else run)(*words)
    assert code == (1 if command in OVER else 0), err
    assert out.strip() or "Wrote" in err


def test_what_it_says_of_a_step_s_host_is_what_the_report_says() -> None:
    """Of the recording that it names."""
    (trace,) = re.findall(r"syncscan analyze (sample_traces/programs/recorded/tips\S+)", README)
    (quoted,) = re.findall(r"the rest\. (Of .*? ms: .* in Python between them\.)", README)
    assert quoted in " ".join(str(syncscan.analyze(ROOT / trace)).split())


def test_its_advice_is_what_a_capture_says() -> None:
    """Of steps that are as uncertain as in the README."""
    (quoted,) = re.findall(r"`(±(\d+)% after (\d+) steps: repeat with --calibrate \d+\.)`", README)
    sentence, percent, steps = quoted[0], int(quoted[1]), int(quoted[2])

    def times(apart: float) -> StepTimes:
        return StepTimes(1000.0, tuple(1000 + apart * (k - (steps - 1) / 2) for k in range(steps)), "device")

    assert str(times(percent / 100 / (times(1.0).uncertainty or 0)).advice()).endswith(sentence)


def test_there_are_commands_to_test() -> None:
    """The search for commands finds some, so that an empty list can't pass."""
    assert len(CONSOLE) > 8


def test_rule_table_is_generated() -> None:
    """The table of rules is what `syncscan rules --format markdown` prints."""
    _, printed, _ = run("rules", "--format", "markdown")
    table = re.search(r"<!-- rules -->\n(.*?)<!-- /rules -->", README, re.S)
    assert table is not None
    assert table.group(1).strip() == printed.strip()


def test_what_it_quotes_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that shows a command with its output shows how that output begins, line for line."""
    quoted = [block.split("\n", 1) for block in re.findall(r"```text\n\$ (.*?)```", README, re.S)]
    assert quoted
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    for command, output in quoted:
        program, *words = shlex.split(command)
        code, printed, _ = run(*words)
        assert (program, code) == ("syncscan", 0)
        assert [line.rstrip() for line in printed.splitlines()][: output.count("\n")] == output.splitlines()


def test_every_projection_beside_its_measurement_is_what_the_recordings_give() -> None:
    """The table, and the figures above it."""
    command = [sys.executable, "benchmarks/whatif.py", "table", "sample_traces/whatif"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    table = [line for line in printed.splitlines() if line.startswith("|")]
    assert "\n".join(table) in README
    summary = re.findall(r"^(?:all syncs|every case): .*?([\d.]+)%.*?([\d.]+)%$", printed, re.M)
    assert len(summary) == 2
    said = README[README.index("19 removals") : README.index("Without the unprofiled step's time")]
    assert re.findall(r"([\d.]+) %(?:, 90th percentile| and) ([\d.]+) %", said) == summary
