"""Which files are read, what of them can't be, and what a file may hold."""

from __future__ import annotations

import json
from pathlib import Path

from syncscan.lint import lint
from tests.each import each

STEP = "def step(model, x):\n    loss = model(x)\n    loss.backward()\n    return loss.item()\n"


def warned_at(*paths: object) -> list[str]:
    return [str(g.source) for g in lint([str(p) for p in paths]).warnings]


def test_a_folder_is_searched_but_for_what_is_no_source_of_its_own(tmp_path: Path) -> None:
    """Hidden folders, environments, builds and packages are left out, unless they are named themselves."""
    for place in ("a.py", "inner/b.py", ".git/c.py", "build/d.py", "node_modules/e.py", "mine/lib/f.py", "notes.txt"):
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"import torch\n{STEP}")
    (tmp_path / "mine/pyvenv.cfg").touch()
    assert warned_at(tmp_path) == [f"{tmp_path}/a.py:5:12", f"{tmp_path}/inner/b.py:5:12"]
    assert warned_at(tmp_path / "build", tmp_path / "build/d.py") == [f"{tmp_path}/build/d.py:5:12"]


@each(
    ("data", "text"),
    [
        (b"def f(:\n", "line 1: invalid syntax"),
        (b"# \xff\xfe torch\n", "neither UTF-8"),
        (b"# coding: klingon\n", "neither UTF-8"),
        (b"x = 1\0\n", "null bytes"),
        (b"x = " + b"(" * 5000 + b")" * 5000, "too many nested parentheses"),
        (b"x = " + b"-" * 100_000 + b"1\n", "nested too deeply"),
        (b"torch = " + b"+".join([b"a"] * 20_000), "nested too deeply"),
        (b"#" * 2_000_001, "larger than 2 MB"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path, data: bytes, text: str) -> None:
    """And the others are read all the same."""
    (tmp_path / "bad.py").write_bytes(data)
    (tmp_path / "good.py").write_text(STEP)
    linted = lint([str(tmp_path / "bad.py"), str(tmp_path / "good.py")])
    assert [text in sentence for sentence in linted.unread] == [True]
    assert (len(linted.warnings), linted.files, linted.unread_named) == (1, 1, True)


def test_what_is_in_a_folder_is_not_named(tmp_path: Path) -> None:
    """So that one old file doesn't fail a whole project's run."""
    (tmp_path / "bad.py").write_text("import torch\nprint 'old'\n")
    linted = lint([str(tmp_path)])
    assert (len(linted.unread), linted.unread_named) == (1, False)


def test_a_notebook_is_read_by_its_cells(tmp_path: Path) -> None:
    """Magics are skipped; a warning names the cell, and the line in it."""
    cells = [
        {"cell_type": "markdown", "source": ["# torch"]},
        {"cell_type": "code", "source": ["%pip install x\n", "import torch\n"]},
        {"cell_type": "code", "source": [line + "\n" for line in STEP.splitlines()]},
        {"cell_type": "code", "source": ["%%bash\n", "ls (\n"]},
    ]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    assert warned_at(tmp_path) == [f"{tmp_path}/n.ipynb:cell 3:4:12"]
    (tmp_path / "n.ipynb").write_text("[]")
    assert "is not a notebook" in lint([str(tmp_path)]).unread[0]


def test_a_column_counts_characters(tmp_path: Path) -> None:
    """As editors do, and not bytes."""
    (tmp_path / "t.py").write_text(STEP.replace("return loss", "ä = 'äöü'; return loss"), encoding="utf-8")
    assert warned_at(tmp_path / "t.py")[0].endswith(":4:23")


def test_a_declared_encoding_is_heeded(tmp_path: Path) -> None:
    """Latin-1 with its declaration is a source as any."""
    (tmp_path / "t.py").write_bytes(b"# coding: latin-1\n# \xe4\n" + STEP.encode())
    assert len(warned_at(tmp_path / "t.py")) == 1


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    """Python counts no line there, `str.splitlines` does: the column behind an umlaut is still the source's."""
    text = "def f(loader, model):\n    for b in loader:\n        \x0c\n        loss = model(b)\n"
    text += "        loss.backward()\n        ö = loss.item()\n"
    (tmp_path / "f.py").write_text(text)
    (warning,) = lint([str(tmp_path / "f.py")]).warnings
    assert (warning.source.line, warning.source.column) == (6, 13)
