"""What the README says is true: its commands run, and its generated parts are what the program says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import syncscan
from syncscan.capture.calibration import StepTimes

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


OVER = {c for c in CONSOLE if c.startswith("syncscan check ") and "--limit" in c}
"""What shows a limit that isn't kept exits 1."""


@pytest.mark.parametrize("command", [c for c in CONSOLE if c not in ELSEWHERE and not SERVERS.fullmatch(c)])
def test_command_works(command: str, desk: Path) -> None:
    """Each command of the README ends as it says, leaves something on stdout or says on stderr what it wrote."""
    words = shlex.split(command)
    assert words[0] == "syncscan", f"only syncscan's own commands belong into a console block: {command}"
    done = subprocess.run([sys.executable, "-m", *words], cwd=desk, capture_output=True, text=True, timeout=240)
    assert done.returncode == (1 if command in OVER else 0), done.stderr
    assert done.stdout.strip() or "Wrote" in done.stderr


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
    printed = subprocess.run(
        [sys.executable, "-m", "syncscan", "rules", "--format", "markdown"], capture_output=True, text=True, check=True
    ).stdout
    table = re.search(r"<!-- rules -->\n(.*?)<!-- /rules -->", README, re.S)
    assert table is not None
    assert table.group(1).strip() == printed.strip()


def test_what_it_quotes_is_printed() -> None:
    """A block that shows a command with its output shows how that output begins, line for line."""
    quoted = [block.split("\n", 1) for block in re.findall(r"```text\n\$ (.*?)```", README, re.S)]
    assert quoted
    for command, output in quoted:
        words = [sys.executable, "-m", *shlex.split(command)]
        env = {**os.environ, "COLUMNS": "100"}
        printed = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
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
