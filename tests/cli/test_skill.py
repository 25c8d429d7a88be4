"""`syncscan skill` writes the instructions for coding agents, whose commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscan.cli import COMMANDS, group
from syncscan.errors import UsageError


def test_it_is_printed_with_a_name_and_a_description() -> None:
    text = CliRunner().invoke(group, ["skill"]).stdout
    assert re.match(r"---\nname: syncscan\ndescription: .+\n---\n", text)


def test_its_commands_exist() -> None:
    text = CliRunner().invoke(group, ["skill"]).stdout
    assert set(re.findall(r"`syncscan (\w+)", text)) <= set(COMMANDS)


def test_a_file_is_written_once(tmp_path: Path) -> None:
    out = tmp_path / "skills" / "syncscan" / "SKILL.md"
    CliRunner().invoke(group, ["skill", "-o", str(out)])
    assert out.read_text().startswith("---")
    with pytest.raises(UsageError, match="exists"):
        CliRunner().invoke(group, ["skill", "-o", str(out)], catch_exceptions=False)
