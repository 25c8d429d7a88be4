"""Reports of a patch: each format names the same fixes, what verified them, and what is left."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.fixing import document as fix_json
from syncscan.fixing import report as fix_report
from syncscan.fixing.edits import unified
from syncscan.fixing.report import flagged_fixes
from syncscan.model.fix import Fix, Fixed, FixGain, Patched, Safety, SourceEdit
from syncscan.report import markup, sarif, terminal
from tests.proof.test_report import NOISY, PROOF
from tests.report.test_sarif import validator
from tests.schemas import wrong

BEFORE = "total = 0.0\nfor loss in losses:\n    total += loss.item()\nprint(total)\n"
AFTER = "total = 0.0\nfor loss in losses:\n    total += loss.double()\ntotal = float(total)\nprint(total)\n"
HOW = "both versions ran dry: this wait is gone, there is no new one, and output and results agree"


def fix(line: int, **more: object) -> Fix:
    values = {
        "file": "train.py",
        "line": line,
        "end_line": line,
        "rule": "item",
        "rewrite": "deferred-read",
        "title": "A number is read in every step and needed after the loop",
        "change": "keep the value on the device and read it after the loop",
        "safety": Safety.SAFE,
        "why": "",
        "verified": True,
        "how": HOW,
        "waits": 30,
        "applied": True,
        "changes": (SourceEdit(3, 14, 3, 25, "loss.double()"),),
        "gain": FixGain(100.0, 80.0, 120.0, 0.05),
    }
    return Fix(**{**values, **more})  # type: ignore[arg-type]


MANUAL = fix(
    9,
    rewrite="",
    safety=Safety.MANUAL,
    why="the value controls what the host runs next",
    applied=False,
    verified=False,
    how="",
    changes=(),
    gain=None,
)
DROPPED = fix(11, applied=False, verified=False, how="not verified: `seen.append(loss)` didn't run", gain=None)
USELESS = fix(
    13, applied=False, verified=False, how="not tried: the recording projects no gain", gain=FixGain(0.0, 0.0, 0.0, 0.0)
)
FILE = Patched("train.py", "/nowhere/train.py", BEFORE, AFTER, "utf-8", unified("train.py", BEFORE, AFTER))
FIXED = Fixed(
    program="train.py --epochs 2",
    fixes=(fix(3), MANUAL, DROPPED, USELESS),
    files=(FILE,),
    waits_before=31,
    waits_after=1,
    tolerance=1e-5,
    seconds=4.0,
    notes=("It is unknown whether my_op waits.",),
)
NOTHING = replace(FIXED, fixes=(MANUAL,), files=(), waits_after=31, notes=())


def rendered(fixed: Fixed, width: int = 100, color: bool = False) -> str:
    """Return the patch and its report for a terminal."""
    return terminal.drawn((*fix_report.patch(fixed), *fix_report.blocks(fixed)), width, color)


@pytest.mark.parametrize("fixed", [FIXED, NOTHING])
def test_json_follows_its_schema(fixed: Fixed) -> None:
    """With and without a patch."""
    assert wrong("fix", fix_json.render(fixed)) == []


def test_json_names_what_is_left_and_why() -> None:
    """A fix with its edits and gain, a manual place with its reason."""
    document = json.loads(fix_json.render(FIXED))
    first, manual, *_ = document["fixes"]
    assert (first["line"], first["safety"], first["verified"], first["gain"]["high_us"]) == (3, "safe", True, 120)
    assert first["changes"] == [{"line": 3, "column": 14, "end_line": 3, "end_column": 25, "text": "loss.double()"}]
    assert (manual["rewrite"], manual["why"]) == ("", "the value controls what the host runs next")
    assert document["files"] == [{"file": "train.py", "diff": FIXED.diff}]


def test_text_begins_with_a_patch_that_git_applies(tmp_path: Path) -> None:
    """The text behind the diff doesn't disturb it."""
    (tmp_path / "train.py").write_text(BEFORE)
    (tmp_path / "fix.patch").write_text(rendered(FIXED))
    subprocess.run(["git", "apply", "fix.patch"], cwd=tmp_path, check=True)
    assert (tmp_path / "train.py").read_text() == AFTER


@pytest.mark.parametrize("text", [BEFORE.replace("\n", "\r\n"), f"import os\n\f\n{BEFORE}", BEFORE.rstrip("\n")])
def test_a_patch_of_line_ends_and_page_breaks_applies(tmp_path: Path, text: str) -> None:
    """Windows' line ends stay, a form feed ends no line, and a last line may have no end."""
    after = text.replace("loss.item()", "loss.double()")
    file = Patched("train.py", "/nowhere/train.py", text, after, "utf-8", unified("train.py", text, after))
    (tmp_path / "train.py").write_bytes(text.encode())
    (tmp_path / "fix.patch").write_bytes(rendered(replace(FIXED, files=(file,))).encode())
    subprocess.run(["git", "apply", "fix.patch"], cwd=tmp_path, check=True)
    assert (tmp_path / "train.py").read_bytes() == after.encode()


def test_text_says_what_is_fixed_and_what_is_left() -> None:
    """A verdict, a table, and a list for each reason not to fix."""
    shown = " ".join(rendered(FIXED, width=200).split())
    assert "1 place is fixed. The host waits once instead of 31 times in the dry run. 3 places are left." in shown
    assert "No gain, according to the recording: train.py:13 [item]" in shown
    apart = rendered(replace(FIXED, waits_before=41, waits_after=11, waits_apart=10), width=200)
    assert "The host waits once instead of 31 times in the dry run, apart from 10 in set-up and checkpoints." in apart
    what = "keep the value on the device and read it after the loop (`loss.double()`)"
    assert f"Not applied: train.py:11 [item] {what}: not verified: `seen.append(loss)` didn't run." in shown
    assert "Left to you: train.py:9 [item] the value controls what the host runs next." in shown


def test_a_long_path_leaves_room_for_what_changes() -> None:
    """Each fix is drawn below its line."""
    path = "a/very/long/path/of/a/project/with/many/folders/in/it/train.py"
    shown = rendered(replace(FIXED, fixes=(fix(3, file=path),)), width=100)
    assert f"\n{path}:3\n    rule: item\n    what changes: keep the value on the device " in shown


def test_a_program_that_fails_is_not_called_clean() -> None:
    """Whatever is unknown, its reason leads."""
    shown = rendered(replace(NOTHING, unjudged="the program fails: ValueError: no data (train.py:3)"), width=200)
    assert shown.startswith("train.py --epochs 2: could not be judged, since the program fails: ValueError: no data")


def test_text_has_colors_only_where_they_are_wanted() -> None:
    """Escape codes break `git apply`."""
    assert "\x1b[" not in rendered(FIXED)
    assert "\x1b[32m+total = float(total)" in rendered(FIXED, color=True)


def test_a_program_without_fixes_has_no_patch() -> None:
    """Only the verdict and what is left."""
    shown = rendered(NOTHING)
    assert shown.startswith("train.py --epochs 2: nothing to fix.")


def test_markdown_holds_the_table_and_the_diff() -> None:
    """Once each, with the gain."""
    shown = markup.drawn((*fix_report.blocks(FIXED), *fix_report.patch(FIXED)))
    assert shown.count("```diff") == 1
    assert "| `train.py:3` | `item` |" in shown
    assert "100 µs per step" in shown


def test_a_pull_request_has_title_table_and_evidence() -> None:
    """The title claims a gain only if it is proven."""
    title, _, body = fix_report.pull_request(FIXED).partition("\n\n")
    assert title == "Remove 1 host-device sync from train.py"
    assert "| waits in the dry run | 31 | 1 |" in body
    assert "syncscan prove --rev main train.py --epochs 2" in body
    assert "less" in fix_report.title(FIXED, PROOF)
    assert "less" not in fix_report.title(FIXED, NOISY)


def test_a_pull_request_compares_the_projection_with_the_measurement() -> None:
    """If a recording projected the patch's gain."""
    assert "Projected: 28.0% (25.0% to 31.0%)." in fix_report.pull_request(FIXED, PROOF)
    assert "Projected: " not in fix_report.pull_request(FIXED, replace(PROOF, projected=None))


def test_names_with_markup_are_escaped() -> None:
    """A file may be called anything."""
    odd = replace(FIXED, fixes=(fix(3, change="x | <img>"),))
    assert "<img>" not in markup.drawn(fix_report.blocks(odd))


def test_sarif_has_the_fix_of_a_result() -> None:
    """With its edits; what is left to the author has none, and its reason."""
    log = json.loads(sarif.drawn([flagged_fixes(FIXED)]))
    fixed, manual = log["runs"][0]["results"][:2]
    (change,) = fixed["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "train.py"
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 14, "endLine": 3, "endColumn": 25},
            "insertedContent": {"text": "loss.double()"},
        }
    ]
    assert "fixes" not in manual
    assert "the value controls what the host runs next" in manual["message"]["text"]


def test_sarif_is_valid() -> None:
    assert [e.message for e in validator().iter_errors(json.loads(sarif.drawn([flagged_fixes(FIXED)])))] == []


def test_a_saved_patch_is_read_back(tmp_path: Path) -> None:
    """Each fix with its edits and its gain."""
    path = tmp_path / "fix.json"
    path.write_text(fix_json.render(FIXED))
    first, *rest = fix_json.read(str(path))
    assert first == FIXED.fixes[0]
    assert [one.line for one in rest] == [9, 11, 13]


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "syncscan.report/1", "fixes": []}'])
def test_what_is_no_patch_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "fix.json").write_text(text)
    with pytest.raises(UsageError, match="no patch"):
        fix_json.read(str(tmp_path / "fix.json"))
