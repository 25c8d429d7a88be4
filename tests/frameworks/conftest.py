"""Runs a program of a framework on the GPU, as it is written and with a switch, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

import syncscan
from syncscan.model.finding import Finding

ROOT = Path(__file__).parents[2]

PLAN = "calibrate=0, settle=0, wait=0, warmup=3, active=2"
"""Five steps: libraries do in the first two what they do once."""
OPTIONS = ("--calibrate", "0", "--wait", "0", "--warmup", "5", "--active", "2")
"""Options for a trainer's own loop too; the capture begins in the middle of its first step."""

LOOP = f"""
import syncscan
with syncscan.profile("out", "steps", {PLAN}, stacks=STACKS) as prof:
    while not prof.done:
        step()
        prof.step()
"""


@dataclass(frozen=True)
class Seen:
    """The findings of one run of a program."""

    program: str
    findings: tuple[Finding, ...]

    def of(self, rule: str, title: str) -> list[Finding]:
        """Return the findings of a rule whose title contains these words."""
        return [f for f in self.findings if f.rule == rule and title in f.title]

    def line(self, finding: Finding) -> str:
        """The line of the program that a finding names; empty where it names another file's."""
        source = finding.source
        if source is None or Path(source.file).name != "program.py":
            return ""
        return self.program.splitlines()[source.line - 1].strip()

    def __str__(self) -> str:
        """Return the text that a failing test shows."""
        rows = [f"{f.rule}: {f.title} | {self.line(f)} | {f.called_from}" for f in self.findings]
        return "\n".join(rows) or "no findings"


Spares = Callable[..., None]


@pytest.fixture
def spares(tmp_path: Path) -> Spares:
    """Asserts that a program has a finding on its line `# here`, and none of it any more once its fix is applied."""

    def check(
        program: str,
        *switches: tuple[str, str],
        rule: str,
        title: str,
        fix: str,
        line: bool = True,
        stacks: bool = False,
    ) -> None:
        """Compare the program with itself after the switches.

        Args:
            program: its text; one that defines `step()` is given a loop, another is run as a script with its own.
            switches: texts of it, and what stands there instead once the fix is applied.
            rule: the finding's rule.
            title: words of its title.
            fix: words of its fix, as the switch is written.
            line: whether it names the program's line, which a hook on autograd's thread can't.
            stacks: record Python frames; a copy that waits in its own call has no others, and no exact line.
        """
        before = seen(program, tmp_path / "before", stacks)
        result = before.of(rule, title)
        assert result, str(before)
        assert not line or any("# here" in before.line(finding) for finding in result), str(before)
        assert fix in result[0].fix
        after = seen(switched(program, switches), tmp_path / "after", stacks)
        assert not after.of(rule, title), str(after)

    return check


def switched(program: str, switches: tuple[tuple[str, str], ...]) -> str:
    for old, new in switches:
        assert program.count(old) == 1, old
        program = program.replace(old, new)
    return program


def seen(program: str, folder: Path, stacks: bool = False) -> Seen:
    """Return the findings of a capture of some steps of the program."""
    text = textwrap.dedent(program).lstrip()
    if "def step(" in text:
        (trace,) = captured(text + LOOP.replace("STACKS", str(stacks)), folder, [])
    else:
        options = (*OPTIONS, "--stacks") if stacks else OPTIONS
        (trace,) = captured(text, folder, ["-m", "syncscan", "profile", *options, "--out", "out"])
    return Seen(text, syncscan.analyze(trace).findings)


def captured(text: str, folder: Path, command: list[str]) -> list[Path]:
    """The traces that the program writes, run by Python with these words before its name."""
    folder.mkdir()
    (folder / "program.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *command, "program.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-4000:]
    return sorted((folder / "out").glob("*.pt.trace.json.gz"))


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], Seen]:
    """For what runs show by themselves: what syncscan finds in a program."""
    numbers = count()
    return lambda program: seen(program, tmp_path / str(next(numbers)))
