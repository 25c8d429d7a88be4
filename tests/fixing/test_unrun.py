"""Changes that the source alone shows are listed, and never called verified."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from syncscan.errors import UsageError
from syncscan.fixing.unrun import HOW, fix_source
from syncscan.report import fix_report

TRAIN = """\
import torch
import a_library_that_is_not_installed

def train(loader, model, opt):
    total, history = 0.0, []
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        history.append(loss.item())
        {more}
    return total, history
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return "train.py"


def test_reads_that_can_wait_are_listed(path: str) -> None:
    """Nothing is part of the patch."""
    Path(path).write_text(TRAIN.format(more="pass"))
    fixed = fix_source(path)
    assert [(fix.line, fix.verified, fix.applied, fix.how) for fix in fixed.fixes] == [
        (11, False, False, HOW),
        (12, False, False, HOW),
    ]
    assert (fixed.files, fixed.ran) == ((), False)
    assert "the source shows 2 places to fix. Nothing ran" in fix_report.verdict(fixed)


def test_the_patch_of_unverified_fixes(path: str) -> None:
    Path(path).write_text(TRAIN.format(more="pass"))
    (file,) = fix_source(path, unverified=True).files
    expected = TRAIN.format(more="pass").replace("total += loss.item()", "total += loss.detach().double()")
    expected = expected.replace("append(loss.item())", "append(loss.detach())")
    read = "    total = float(total)\n    history = torch.stack(history).tolist() if history else []\n    return"
    assert file.after == expected.replace("    return", read)


@pytest.mark.parametrize(
    "more",
    [
        "if total > 9 or history[-1] > 9:\n            break",
        "print(total, history)",
        "yield total, history",
        "record(total, history)",
    ],
)
def test_what_the_host_may_need_is_left(path: str, more: str) -> None:
    """A comparison, a line of output in each step, a generator, a function that nobody sees."""
    Path(path).write_text(TRAIN.format(more=more))
    assert fix_source(path).fixes == ()


def test_a_number_of_unknown_type_is_left(path: str) -> None:
    """It may be an integer, whose sum has other digits."""
    Path(path).write_text(TRAIN.format(more="pass").replace("loss.item()", "hits.item()"))
    assert fix_source(path).fixes == ()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("encoding", "comment"),
    [("latin-1", "Größe"), ("shift_jis", "損失\u3000"), ("utf-8-sig", "Größe"), ("utf-8", "損失\u3000\xa0")],
)
def test_git_applies_the_patch_of_a_file_in_any_encoding(path: str, encoding: str, comment: str, line_end: str) -> None:
    """Byte for byte, with a byte order mark, Windows' line ends, and spaces of other scripts."""
    declared = f"# coding: {encoding.removesuffix('-sig')}\n# {comment}\n"
    source = declared + TRAIN.format(more="pass").replace("opt.step()", f"opt.step()  # {comment}")
    Path(path).write_bytes(source.replace("\n", line_end).encode(encoding))
    fixed = fix_source(path, unverified=True)
    Path("fix.patch").write_bytes(fixed.patch)
    subprocess.run(["git", "apply", "fix.patch"], check=True)
    assert Path(path).read_bytes() == fixed.files[0].after.encode(encoding)


@pytest.mark.parametrize("folder", ["", "notebooks/"])
def test_a_notebook_is_refused_with_what_to_do(path: str, folder: str) -> None:
    """It isn't read as Python."""
    with pytest.raises(UsageError, match="is a notebook, not a script") as refused:
        fix_source(f"{folder}train.ipynb")
    assert refused.value.hint.endswith(f"jupyter nbconvert --to script {folder}train.ipynb")


def test_a_file_that_is_no_python_is_refused(path: str) -> None:
    Path(path).write_text("def")
    with pytest.raises(UsageError, match="can't be read as Python"):
        fix_source(path)
