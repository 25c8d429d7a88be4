"""`syncscan watch` shows what a watch has written, as text, JSON or Prometheus text."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.errors import TraceNotFound
from syncscan.watching.watch_file import Journal
from tests import schemas
from tests.watching.example import END, begin, window


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    journal = Journal(tmp_path / "train.1.watch.jsonl")
    for record in (begin(), window(1, 0.1), window(2, 0.25), END):
        journal.write(record)
    journal.close()
    return tmp_path


def printed(*words: str) -> str:
    result = CliRunner().invoke(group, ["watch", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_folder_s_newest_watch_is_printed_once(folder: Path) -> None:
    shown = printed("--once", str(folder))
    assert "waiting: 25% for the device" in shown
    assert "train.py:41" in shown


def test_without_a_path_the_newest_watch_below_the_folder_is_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `syncscan watch SCRIPT` writes it, in a folder of its own."""
    monkeypatch.chdir(folder.parent)
    assert "waiting: 25% for the device" in printed("--once")


def test_the_last_window_follows_its_schema(folder: Path) -> None:
    document = json.loads(printed("--once", "--format", "json", str(folder)))
    jsonschema.validate(document, schemas.schema("watch"))
    assert document["total_steps"] == 400


def test_prometheus_text_is_of_the_last_window(folder: Path) -> None:
    text = printed("--once", "--format", "prometheus", str(folder / "train.1.watch.jsonl"))
    assert 'syncscan_watch_waiting_share{program="train",rank="0"} 0.25' in text


def test_the_screen_ends_with_the_watch(folder: Path) -> None:
    """It draws until the file says that the watch has ended."""
    assert "after 1000 steps" in printed(str(folder))


def test_a_folder_without_a_watch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFound, match="contains no"):
        CliRunner().invoke(group, ["watch", str(tmp_path)], catch_exceptions=False)
