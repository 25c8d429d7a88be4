"""The programs that the measured numbers come from start, and say what they lack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = {"capture_steps"}
"""What others are made of, and nobody calls."""
MODULES = sorted({path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")} - SHARED)
torch = pytest.importorskip("torch")


def run(module: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"benchmarks.{module}", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("module", MODULES)
def test_each_says_how_it_is_called(module: str) -> None:
    """With exit code 0, and without measuring anything."""
    if module == "mutants":
        pytest.importorskip("mutmut")  # comes with `make mutants`
    done = run(module, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {module}.py")


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
@pytest.mark.parametrize(
    "arguments", [("capture_cost",), ("capture_waits",), ("guard_cost",), ("whatif", "record", "folder")]
)
def test_what_measures_on_a_gpu_asks_for_one(arguments: tuple[str, ...]) -> None:
    """In a sentence, and without leaving a folder."""
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("error: this measures on a GPU, and there is none.")
    assert not (ROOT / "folder").exists()


def test_the_smallest_of_each_kind(tmp_path: Path) -> None:
    """A trace is tiled, read beside other readers, and looked at for the thresholds."""
    source, big = ROOT / "sample_traces/clean.pt.trace.json.gz", tmp_path / "big.json.gz"
    assert run("tile", str(source), str(big), "0.5").returncode == 0
    read = run("reading", "--sizes", "0.1", "--runs", "1", "--only", "reading", "--folder", str(tmp_path))
    assert "| syncscan, reading |" in read.stdout
    assert "launches that outlast their kernel" in run("detect_thresholds", str(big)).stdout
