"""A wait that protects the read of a copy's memory is said to, in a recording as far as that can be seen."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from tests.builder import TraceBuilder


@pytest.mark.parametrize(
    ("kind", "protects"), [("Memcpy DtoH (Device -> Pinned)", True), ("Memcpy HtoD (Pinned -> Device)", False)]
)
def test_a_wait_behind_a_copy_into_pinned_memory_is_kept(kind: str, protects: bool) -> None:
    """The second wait of each step has nothing new to protect."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.op("aten::copy_", start + 10, start + 30):
            t.copy(kind, at=start + 12, lasts=100)
        with t.scope("read", start + 35, start + 400):
            t.synchronize(at=start + 40)
        with t.scope("again", start + 405, start + 800):
            t.launch("gemm", at=start + 410, lasts=50)
            t.synchronize(at=start + 430)
    fixes = {f.scope[-1]: f.diagnosis.fix for f in analyze_trace(t.trace()).findings}
    assert fixes["read"].startswith("Keep a wait here") is protects
    assert fixes["again"].startswith("Remove it")
