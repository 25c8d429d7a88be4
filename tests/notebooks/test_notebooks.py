"""The notebooks run from top to bottom on a CPU, say what they promise, and are stored without output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SHOWN = {
    "01_find_and_fix": ("The device is the limit", "backward: IndexBackward0", "No host-device syncs found."),
    "02_read_a_trace": ("Syncs are the limit", "aten::_local_scalar_dense", "wait, measured"),
    "03_what_if": ("predicted", "1. remove to-device-", "Nothing to gain from removing syncs"),
    "04_timing_and_overlap": (
        "a call takes",
        "6 of 6 measured steps lie in the predicted range",
        "streams-in-turn",
    ),
}
"""What a reader must come to see, by notebook."""


def names(path: Path) -> str:
    return path.stem


def text(output: Any) -> str:
    """What an output shows: streams, plain text, HTML and Markdown."""
    data = output.get("data", {})
    return "\n".join([output.get("text", ""), *(data[k] for k in data if k.startswith("text/"))])


def test_there_are_notebooks():
    """None has gone missing."""
    assert set(SHOWN) <= {p.stem for p in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_stored_without_output(path: Path):
    """No output, no execution count: diffs show what somebody wrote."""
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert [(c.outputs, c.execution_count) for c in code] == [([], None)] * len(code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=names)
def test_runs_and_shows_what_it_promises(path: Path):
    """Every cell runs, and what the text speaks of is there to be seen."""
    if path.stem in ("01_find_and_fix", "04_timing_and_overlap"):
        pytest.importorskip("torch")
    notebook = nbformat.read(path, 4)
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    ).execute()
    seen = "\n".join(text(o) for c in notebook.cells if c.cell_type == "code" for o in c.outputs)
    assert [part for part in SHOWN.get(path.stem, ()) if part not in seen] == []
