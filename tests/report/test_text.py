"""The terminal report says what a reader needs first, and says it safely."""

from __future__ import annotations

from syncscan.api import analyze_trace
from syncscan.report import text, units
from tests.builder import TraceBuilder


def report(t: TraceBuilder, **options: int) -> str:
    return text.render(analyze_trace(t.trace()), **options)


def test_a_step_without_syncs_says_so() -> None:
    """No findings: the report says it, shows no table and offers no details."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        t.launch("gemm", at=start + 5, lasts=90)
    lines = report(t).splitlines()
    assert "No host-device syncs found." in lines
    assert not any("severity" in line for line in lines)


def test_verbose_shows_the_chain_and_the_fix() -> None:
    """`-v` shows of each finding the chain of ops down to the runtime call, why it waits and what to do."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.sync("aten::item", at=start + 20, wait=500)
    shown = report(t, verbose=1)
    assert "aten::item > cudaStreamSynchronize" in shown
    for heading in ("why", "fix", "fine when", "measured"):
        assert f" {heading} " in shown


def test_width_is_kept() -> None:
    """No line is longer than the terminal is wide, whatever names the trace holds."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.scope("x" * 5000, start + 1, start + 900):
            t.sync("aten::" + "y" * 300, at=start + 20, wait=500)
    assert max(map(len, report(t, width=80, verbose=1).splitlines())) <= 80


def test_durations_have_three_digits() -> None:
    """A time is shown with three significant digits in the unit that fits."""
    shown = [units.duration(us) for us in (0.0, 0.4512, 6.26, 25.84, 254_315.0, 1_034_000.0)]
    assert shown == ["0 µs", "0.45 µs", "6.26 µs", "25.8 µs", "254 ms", "1.03 s"]
