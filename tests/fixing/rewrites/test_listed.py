"""The guide lists every rewrite."""

from __future__ import annotations

from pathlib import Path

from syncscan.fixing.rewrites import REWRITES

GUIDE = Path(__file__).parents[3] / "docs" / "howto" / "fix.md"


def test_the_guide_lists_the_rewrites_in_order() -> None:
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [f"| `{one.id}` | {one.safety.value} | {one.title} |" for one in REWRITES]
