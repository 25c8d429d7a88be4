"""A trace whose name is no UTF-8, as Linux allows: each command that reads it writes UTF-8 and strict JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscan.cli import group
from tests.fuzz.regressions import trace, waiting
from tests.offered import offered

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere take text alone")

READERS = [
    ("analyze", "--format", "json"),
    ("analyze", "--format", "sarif"),
    ("analyze", "--format", "text"),
    ("whatif", "--format", "json"),
    ("check", "--format", "json"),
    ("check", "--format", "sarif"),
    ("fleet", "--format", "json"),
]


@pytest.fixture
def named(tmp_path: Path) -> str:
    """A trace named in Latin-1."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xfcbung.json")
    Path(path).write_bytes(trace(waiting()))
    return path


@pytest.mark.parametrize("command", offered(READERS), ids=" ".join)
def test_it_is_read(named: str, command: tuple[str, ...]) -> None:
    """The output is UTF-8, and its JSON has no lone surrogate, which strict readers refuse."""
    done = CliRunner().invoke(group, [command[0], named, *command[1:]], catch_exceptions=False)
    text = done.stdout_bytes.decode()
    assert "\\udc" not in text
    if command[-1] in ("json", "sarif"):
        assert json.loads(text)


def test_its_saved_analysis_is_read_again(named: str, tmp_path: Path) -> None:
    """And says the same."""
    saved = str(tmp_path / "x.syncscan.json")
    texts = [
        CliRunner().invoke(group, ["analyze", *words], catch_exceptions=False).stdout
        for words in ([named, "-o", saved], [named], [saved])
    ]
    assert texts[1] == texts[2] != ""
