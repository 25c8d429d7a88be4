"""The notebooks are stored with what they show, and run from top to bottom on a CPU they show the same again.

`pytest tests/notebooks --update-golden` runs them and stores what came of it.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import syncscan

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SHOWN = {
    "01_find_and_fix": ("The device is the limit", "backward: IndexBackward0", "The trace has no device work."),
    "02_read_a_trace": ("Syncs may be the limit", "aten::_local_scalar_dense", "wait, measured"),
    "03_what_if": ("predicted", "1. remove to-device-", "→ limit: sync"),
    "04_timing_and_overlap": (
        "a call takes",
        "6 of 6 measured steps lie in the predicted range",
    ),
}
"""Texts that a reader must see, by notebook."""
PICTURES = {"01_find_and_fix": 4, "02_read_a_trace": 2, "03_what_if": 3, "04_timing_and_overlap": 1}
"""How many pictures each has at least."""
VARIES = "varies"
"""Tag of a cell that is timed on the machine at hand: that it shows something is compared, and not what."""
_SVG = re.compile(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+")
_AT = re.compile(r" at 0x[0-9a-f]+")


def names(path: Path) -> str:
    return path.stem


def code(notebook: Any) -> list[Any]:
    return [c for c in notebook.cells if c.cell_type == "code"]


def text(output: Any) -> str:
    """Return the text of an output: streams, plain text, HTML and Markdown."""
    data = output.get("data", {})
    return "\n".join([output.get("text", ""), *("".join(data[k]) for k in data if k.startswith("text/"))])


def pictures(notebook: Any) -> int:
    outputs = [o for c in code(notebook) for o in c.outputs]
    drawn = sum(bool({"image/png", "image/svg+xml"} & o.get("data", {}).keys()) for o in outputs)
    return drawn + sum(len(_SVG.findall(o.get("data", {}).get("text/html", ""))) for o in outputs)


def comparable(cell: Any) -> list[Any]:
    """A cell's outputs without what differs from one machine or version of matplotlib to the next."""
    if VARIES in cell.metadata.get("tags", ()):
        return sorted({kind for o in cell.outputs for kind in o.get("data", {})})
    return [(o.get("name", ""), _stable(o.get("data", {})), o.get("text", "")) for o in cell.outputs]


def _stable(data: Any) -> dict[str, str]:
    return {k: "" if k == "image/png" else _AT.sub("", "".join(v)) for k, v in sorted(data.items())}


def executed(path: Path) -> Any:
    """A notebook run from top to bottom in its folder, with what it shows and nothing else of this run."""
    notebook = nbformat.read(path, 4)
    where = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=where, record_timing=False
    ).execute()
    for cell in code(notebook):
        cell.outputs = list(_joined(cell.outputs))
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def _joined(outputs: Any) -> Iterator[Any]:
    """Return printed pieces as one; messages beside it hold times of day and temporary paths."""
    for name, pieces in itertools.groupby((o for o in outputs if o.get("name") != "stderr"), lambda o: o.get("name")):
        if name is None:
            yield from pieces
        else:
            yield nbformat.v4.new_output("stream", name=name, text="".join(o.text for o in pieces))


def test_there_are_notebooks() -> None:
    """None has gone missing."""
    assert set(SHOWN) <= {p.stem for p in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_a_stored_notebook_shows_what_it_promises(path: Path) -> None:
    """Who reads it on a code host sees what the text speaks of, and pictures, and neither error nor path of ours."""
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    seen = "\n".join(text(o) for c in code(notebook) for o in c.outputs)
    assert [part for part in SHOWN.get(path.stem, ()) if part not in seen] == []
    assert pictures(notebook) >= PICTURES.get(path.stem, 1)
    assert [o for c in code(notebook) for o in c.outputs if o.output_type == "error" or "/home/" in text(o)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_a_notebook_uses_the_public_names_alone(path: Path) -> None:
    """Readers can do all that it shows: no internal module is imported, and every name is in `__all__`."""
    source = "\n".join(c.source for c in code(nbformat.read(path, 4)))
    tree = ast.parse("\n".join(line for line in source.splitlines() if not line.startswith("%")))
    modules = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    modules += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    assert [m for m in modules if m.startswith("syncscan.")] == []
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "syncscan"}
    assert used <= set(syncscan.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_a_notebook_shows_again_what_is_stored(path: Path, request: pytest.FixtureRequest) -> None:
    """Cell by cell, but for pictures' bytes and what is timed on this machine."""
    if path.stem in ("01_find_and_fix", "04_timing_and_overlap"):
        pytest.importorskip("torch")
    stored, again = nbformat.read(path, 4), executed(path)
    if request.config.getoption("--update-golden"):
        path.write_text(f"{nbformat.writes(again)}\n")
        return
    differ = [c.source for c, d in zip(code(stored), code(again), strict=True) if comparable(c) != comparable(d)]
    assert differ == [], "run with --update-golden and look at the diff"
