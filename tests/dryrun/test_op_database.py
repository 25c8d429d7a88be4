"""Samples of torch's own op database, run dry: what held a GPU is said, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SEEN_IN_TRACES = ["linalg.ldl_solve#0"]
"""A wait of a solver's own, of which torch's debug mode hears nothing."""


def test_what_held_a_gpu_is_reported_and_nothing_else() -> None:
    """The first sample of each op, and four of those that wait; in a process of its own, as the database asks for.

    Each of its ops looks through the stack that imports it, which takes pytest's a quarter of a minute.
    """
    pytest.importorskip("expecttest", reason="torch's op database needs it")
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.op_database", "table", "sample_traces/opdb", "--few"]
    messages = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    (text,) = [line for line in messages if line.startswith("dry run: ")]
    assert text.endswith(f"; missed []; said besides {SEEN_IN_TRACES}")
    assert int(text.split()[2]) > 800
