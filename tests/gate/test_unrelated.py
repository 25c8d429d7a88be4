"""A diff of two different programs says so; two states of one program don't."""

from __future__ import annotations

from pathlib import Path

from syncscan.gate import comparison
from syncscan.gate.diff_report import verdict
from syncscan.gate.recordings import UNRELATED
from tests.each import each
from tests.recordings import analyzed

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@each(
    ("before", "after", "warns"),
    [
        ("logged.pt.trace.json.gz", "whatif/detector.json.gz", True),
        ("whatif/agent.json.gz", "programs/recorded/tips.fp32.pt.trace.json.gz", True),
        ("logged.pt.trace.json.gz", "logged.kept.pt.trace.json.gz", False),
        ("maskedloss.v0.pt.trace.json.gz", "maskedloss.v3.pt.trace.json.gz", False),
        ("programs/recorded/tips.fp32.pt.trace.json.gz", "programs/recorded/tips.tf32.pt.trace.json.gz", False),
        ("programs/recorded/tips.item.pt.trace.json.gz", "programs/recorded/tips.no_item.pt.trace.json.gz", False),
        ("lines.pt.trace.json.gz", "lines.pt.trace.json.gz", False),
    ],
)
def test_different_programs_are_warned_of(before: str, after: str, warns: bool) -> None:
    """By their places and kernels: removing a sync, or computing in another precision, is the same program."""
    diff = comparison.diff([analyzed(SAMPLES / before)], [analyzed(SAMPLES / after)])
    assert (UNRELATED in diff.notes) == diff.unrelated == warns
    assert not (warns and "no others" in verdict(diff))
