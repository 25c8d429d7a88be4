"""An alarm runs a command, and fails a job where that is wanted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from syncscan.errors import UsageError
from syncscan.watching.alarm import AlarmCommand
from tests.until import until
from tests.watching.example import ALARM


def test_a_command_has_the_alarm_on_its_standard_input(tmp_path: Path) -> None:
    """And as a sentence in its environment."""
    code = "import os, sys; open('got', 'w').write(sys.stdin.read() + os.environ['SYNCSCAN_ALARM'])"
    script = tmp_path / "alarm.py"
    script.write_text(code.replace("'got'", repr(str(tmp_path / "got"))))
    AlarmCommand(f"{sys.executable} {script}")(ALARM)
    until(lambda: (tmp_path / "got").exists() and (tmp_path / "got").read_text())
    text, _, sentence = (tmp_path / "got").read_text().partition("}")
    assert json.loads(text + "}")["line"] == 41
    assert sentence == str(ALARM)


def test_a_command_that_is_not_there_disturbs_nobody() -> None:
    run = AlarmCommand("/nowhere/at-all")
    for _ in range(10):
        run(ALARM)
    AlarmCommand("")(ALARM)


@pytest.mark.parametrize("command", ["touch 'a b", "'"])
def test_a_command_that_no_shell_could_split_is_refused(command: str) -> None:
    with pytest.raises(UsageError, match="No closing quotation"):
        AlarmCommand(command)
