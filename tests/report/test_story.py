"""A story's advice neither contradicts nor repeats itself."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.step import Outlook
from syncscan.report import render
from syncscan.report.story import story_of
from tests.builder import TraceBuilder
from tests.report.example import (
    HOSTILE,
    LAUNCHES,
    STEP,
    analysis,
    finding,
    hostile,
    of_habit,
    remedy,
)

NOTHING = Outlook(gains=False, sentence="Syncs aren't it, launches are.", beside="Syncs aren't it.")


def told(outlook: Outlook | None, *remedies: object) -> Analysis:
    """An analysis with one finding, one habit and these remedies."""
    outcome = analysis(finding(), step=replace(STEP, outlook=outlook))
    return replace(outcome, habits=(LAUNCHES,), remedies=remedies)  # type: ignore[arg-type]


def test_nothing_to_gain_from_syncs_is_reported_before_the_habit_that_gains() -> None:
    """Without what to try instead: the habit says that."""
    story = story_of(told(NOTHING, of_habit(LAUNCHES)))
    assert (story.nothing, story.then) == ("Syncs aren't it.", "")
    assert story.advice[0] == story.nothing
    assert story.advice[1].startswith("1. The step is bound by its launches")


def test_where_nothing_is_known_to_gain_it_is_reported_what_to_try() -> None:
    """No list follows."""
    assert story_of(told(NOTHING)).advice == ("Syncs aren't it, launches are.",)


def test_a_sync_in_the_list_is_not_reported_to_gain_nothing() -> None:
    """One that saves too little to be a piece of advice may still be worth a change."""
    assert story_of(told(NOTHING, remedy())).nothing == ""


def test_what_limits_the_step_then_names_the_syncs_where_the_list_holds_habits() -> None:
    """There `it` could be any of them."""
    assert story_of(told(STEP.outlook, remedy())).then == "Without it the host is the limit."
    both = story_of(told(STEP.outlook, remedy(), of_habit(LAUNCHES)))
    assert both.advice[-1] == "Without its sync the host is the limit."


def test_without_a_replay_no_advice_is_made_up() -> None:
    """Nor with a verdict that the trace can't give."""
    assert story_of(told(None)).advice == ()


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
    assert story_of(api.analyze_trace(t.trace())).next == ("syncscan", "dryrun", "train.py")
