"""Fixtures that tests of several commands read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builder import TraceBuilder


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace with a sync in each of two steps."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch("gemm", at=start + 10, lasts=400)
        t.sync("aten::nonzero", at=start + 50)
    return t.write(tmp_path / "trace.pt.trace.json.gz")
