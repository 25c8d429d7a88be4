"""Public programs: each change that is kept is one's of them, applies, and follows the first advice."""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.public import measure, table
from syncscan.cli import group
from tests.each import each

ROOT = Path(__file__).parent.parent
PATCHES = ROOT / "benchmarks" / "public" / "patches"
RECORDED = ROOT / "benchmarks" / "public" / "recorded"
OLD = "import torch\r\nx = 1\r\n\r\ny = 2\r\nz = 3\r\n"


def test_each_patch_belongs_to_a_program() -> None:
    """And each program that a line of the results names has its patch."""
    named = {patch for program in measure.programs().values() for patch in program.patches.values()}
    assert named == {path.stem for path in PATCHES.iterdir()}
    assert {line["patch"] for line in table.latest(table.RESULTS) if "patch" in line} <= named


@each("path", PATCHES.iterdir(), ids=lambda path: path.stem)
def test_a_patch_changes_few_lines_of_python(path: Path) -> None:
    """As one would write it by hand: it adds no more than twenty."""
    text = path.read_text(encoding="utf-8")
    assert 0 < len(re.findall(r"^\+(?!\+\+)", text, re.M)) <= 20
    assert all(name.endswith(".py") for name in re.findall(r"^\+\+\+ b/(\S+)", text, re.M))


@each(
    "new", [OLD.replace("x = 1", "x = 5"), "first\r\n" + OLD, OLD + "last\r\n", OLD.replace("\r\ny", "\r\nw = 4\r\ny")]
)
def test_a_patch_is_applied(new: str, tmp_path: Path) -> None:
    """With the ends of lines that the file has; a file with other lines is refused."""
    program = tmp_path / "a" / "train.py"
    program.parent.mkdir(exist_ok=True)
    program.write_bytes(OLD.encode())
    lines = difflib.unified_diff(OLD.splitlines(True), new.splitlines(True), "a/a/train.py", "b/a/train.py", n=1)
    patch = "".join(lines)
    measure.patched(tmp_path, patch)
    assert program.read_bytes().decode() == new
    program.write_bytes(b"another\r\n" * 5)
    with pytest.raises(measure.Failed, match="isn't what the patch changes"):
        measure.patched(tmp_path, patch)


@each(
    ("trace", "kind", "share"),
    [("logged.pt.trace.json.gz", "waits", 0.27), ("launches/mlp_logged.json.gz", "launches", 0.5)],
)
def test_the_change_that_comes_first_is_chosen(trace: str, kind: str, share: float) -> None:
    """With what was projected for it."""
    words = ["analyze", "--format", "json", str(ROOT / "sample_traces" / trace)]
    analysis = json.loads(CliRunner().invoke(group, words).stdout)
    advice = measure.advised(analysis, {"waits": "waits", "launches": "launches"})
    assert (advice["patch"], advice["followed"]) == (kind, True)
    assert advice["projected"][0] > share - 0.05
    assert not measure.advised(analysis, {"loader-no-workers": "c"})["followed"]


@each("path", RECORDED.iterdir(), ids=lambda path: path.name.partition(".")[0])
def test_a_row_says_what_is_said_of_its_recording(path: Path) -> None:
    """Whatever was said when it was measured; the page tells where that was something else."""
    name = path.name.partition(".")[0]
    (line,) = (line for line in table.latest(table.RESULTS) if line["name"] == name)
    analysis = json.loads(CliRunner().invoke(group, ["analyze", "--format", "json", str(path)]).stdout)
    says = measure.advised(analysis, measure.programs()[name].patches)
    assert {key: line[key] for key in says} == says


def test_a_result_is_told_by_its_interval() -> None:
    """And by the verdict of prove, where there is one."""
    gains = {"gain": [0.3, 0.2, 0.4], "no gain": [0.0, -0.1, 0.04], "open": [0.1, -0.1, 0.3]}
    assert [table.verdict({"measured": gain}) for gain in gains.values()] == list(gains)
    assert table.verdict({"measured": gains["gain"], "verdict": "proven"}) == "proven"
