"""Changes of `syncscan fix` come to the findings whose lines they change, as it is now; with `--fixes`, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from syncscan.cli import group
from syncscan.fixing import document
from syncscan.fixing.document import suggest
from syncscan.model.finding import Excerpt, Finding, Source
from syncscan.model.fix import Fix, SourceEdit
from tests.builder import TraceBuilder
from tests.fixing.test_report import BEFORE, FIXED, fix
from tests.report.example import analysis, finding

GIVEN = SourceEdit(3, 19, 3, 25, "detach()")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the finding and the fix are about."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(BEFORE)
    return path


def found(path: Path, line: int = 3, **more: object) -> Finding:
    """Return a finding at a line of the program."""
    source = Source("train.py", line, "<module>", exact=True)
    values = {"path": str(path), "first": 1, "lines": ("x",), "marked": (line,), "newer": False, **more}
    return replace(finding(source=source), excerpt=Excerpt(**values))  # type: ignore[arg-type]


def changed(one: Finding, *fixes: Fix) -> str:
    """Return the diff that a finding gets; empty for none."""
    (answer,) = suggest(analysis(one), fixes).findings
    return answer.suggested.diff if answer.suggested else ""


def test_a_finding_gets_the_change_of_its_line(program: Path) -> None:
    diff = changed(found(program), fix(3, changes=(GIVEN,)))
    assert diff.startswith("--- a/train.py")
    assert "-    total += loss.item()\n+    total += loss.detach()\n" in diff


def test_another_line_gets_none(program: Path) -> None:
    assert changed(found(program, 4), fix(3, changes=(GIVEN,))) == ""


def test_a_file_that_changed_gets_none(program: Path) -> None:
    """An edit that no longer fits isn't shown."""
    program.write_text("x = 1\n")
    assert changed(found(program), fix(3, changes=(GIVEN,))) == ""


def test_a_newer_file_needs_the_same_rule(program: Path) -> None:
    """Lines may have moved since the recording."""
    assert changed(found(program, newer=True), fix(3, rule="item", changes=(GIVEN,))) == ""


def test_a_fix_that_builds_on_another_one_is_not_shown(program: Path) -> None:
    assert changed(found(program), fix(3, changes=())) == ""


@pytest.mark.parametrize("rule", ["nonzero", "item"])
def test_a_saved_analysis_gets_the_change_of_the_recorded_file(program: Path, rule: str) -> None:
    """It keeps no path of its own, so the rule has to be the same as well; of a module's lines it keeps no excerpt."""
    one = found(program)
    assert one.excerpt is not None
    for saved in (replace(one, excerpt=replace(one.excerpt, path="")), replace(one, excerpt=None)):
        diff = changed(saved, fix(3, rule=rule, changes=(GIVEN,)))
        assert bool(diff) == (rule == saved.rule)


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
