"""Evidence: everything that a reviewer asks about one finding, in one block."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from syncscan.report import evidence
from tests.each import each
from tests.report.example import HOSTILE, hostile, typical


@pytest.mark.parametrize("number", range(4))
def test_golden(number: int, golden: Callable[[str, str], None]):
    """Each kind of finding looks as kept."""
    a = typical()
    golden(f"evidence{number}.md", evidence.render(a, a.findings[number]))


def test_it_says_line_chain_wait_bubble_and_how_measured():
    """The parts that make a claim checkable are there."""
    a = typical()
    text = evidence.render(a, a.findings[0])
    for part in ("train/detect.py:42", "aten::index > aten::nonzero > cudaStreamSynchronize", "8.21 ms", "8.90 ms"):
        assert part in text
    assert "each 8.20 ms (8.00 ms to 8.43 ms)" in text
    assert "recorded at the sync itself" in text


def test_a_projection_is_never_called_measured():
    """Where nothing was projected no gain is claimed."""
    a = typical()
    assert "projected" in evidence.render(a, a.findings[0])
    assert "projected" not in evidence.render(a, a.findings[2])


@each("text", HOSTILE)
def test_hostile_text_makes_no_markup(text: str):
    """Each fact stays in its row, and no HTML but ours appears."""
    a = hostile(text)
    out = evidence.render(a, a.findings[0])
    table = [line for line in out.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {3}
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "CODE", out)
    assert set(re.findall(r"<[^>]*>", outside)) == {"<sub>", "</sub>"}
