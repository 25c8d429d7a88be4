"""A story's advice neither contradicts nor repeats itself."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.report import render
from syncscan.report.front import front_of
from syncscan.report.story import story_of
from tests.builder import TraceBuilder
from tests.report.example import (
    HOSTILE,
    analysis,
    finding,
    hostile,
)


@pytest.mark.parametrize("text", [t for t in HOSTILE if t], ids=ascii)
def test_a_hostile_habit_can_not_reach_the_terminal(text: str) -> None:
    """Control characters and direction marks are replaced, with -v too."""
    shown = render(hostile(text), "text", verbose=1)
    assert not any(c in shown for c in "\x1b\x07\x00\x0b\u202e\u2066\ud800")


def test_a_trace_without_lines_says_how_to_record_them() -> None:
    """Only where no sync has one."""
    advice = "No source lines: record with syncscan profile, or with_stack=True for functions."
    bare = finding(source=None)
    assert advice in story_of(analysis(bare)).steps_found
    assert advice not in story_of(analysis(bare, finding("item-0"))).steps_found
    assert advice not in story_of(analysis()).steps_found


def test_a_trace_without_device_work_leads_to_a_dry_run() -> None:
    """As a profile on a CPU: recording it there once more would show as little."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.op("aten::mm", start + 10, start + 50)
    assert front_of(api.analyze_trace(t.trace())).next == ("syncscan", "dryrun", "train.py")
