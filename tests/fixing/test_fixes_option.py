"""`--fixes`: a saved patch is shown at the findings of a recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from syncscan.cli import group
from syncscan.fixing import document
from syncscan.model.fix import SourceEdit
from tests.builder import TraceBuilder
from tests.fixing.test_report import BEFORE, FIXED, fix


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program, its recording with an exact line, and its saved patch."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(BEFORE)
    t = TraceBuilder()
    for start in t.steps(3, lasts=10_000):
        t.launch("gemm", at=start + 10, lasts=4_000)
        t.sync("aten::item > aten::_local_scalar_dense", at=start + 50)
        t.exact(start + 52, (f"{tmp_path}/train.py", 3, "<module>"))
    t.write(Path("t.json"))
    change = fix(3, changes=(SourceEdit(3, 19, 3, 25, "detach()"),), change="keep the value on the device")
    Path("fix.json").write_text(document.render(replace(FIXED, fixes=(change,))))


@pytest.mark.parametrize(
    "words",
    [
        ["report", "t.json", "-o", "-"],
        ["analyze", "t.json", "--format", "sarif"],
        ["analyze", "t.json", "--format", "html"],
    ],
)
def test_the_change_stands_at_its_finding(recorded: None, words: list[str]) -> None:
    """With what it does and how it was verified; without the option there is none."""
    text = "syncscan fix would keep the value on the device (safe; verified by a dry run)"
    assert text in CliRunner().invoke(group, [*words, "--fixes", "fix.json"]).stdout
    assert text not in CliRunner().invoke(group, words).stdout
