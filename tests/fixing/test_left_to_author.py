"""Waits that are left to the author, each with a reason."""

from __future__ import annotations

import ast

import pytest

from syncscan.fixing.left_to_author import Reason, reason_for, runs_seldom, why_left
from syncscan.fixing.messages import Observations, Observed, WaitingLine
from syncscan.fixing.program_file import File
from syncscan.fixing.source_text import Text


@pytest.mark.parametrize(
    ("rule", "cause", "why"),
    [
        ("nonzero", "SHAPE", "the number of elements is the size of a later tensor, which the host needs"),
        ("tensor-bool", "CTRL", "the value controls what the host runs next"),
        ("log-scalar", "LOG", "the value is printed or logged in every step; log it less often if that is enough"),
        (
            "accelerate",
            "PAGEABLE",
            "a library waits here, and its settings are yours to choose. Set non_blocking=True",
        ),
        (
            "to-device",
            "PAGEABLE",
            "no rewrite is certain to keep the results here. Set non_blocking=True",
        ),
    ],
)
def test_the_reason_follows_from_the_cause(rule: str, cause: str, why: str) -> None:
    """A library's wait is left with the setting that avoids it."""
    place = WaitingLine(rule, "", "Set non_blocking=True.", "train.py", 3, 9, cause, steers=False)
    assert why_left(place) == why


def test_a_reason_is_of_the_setting_that_the_wait_is_about() -> None:
    """A line that trains waits for several; what is said of a read beside a library's call isn't about the library."""
    reasons = [Reason("it steers"), Reason("it filters", "nan_filter=False")]
    read = WaitingLine("item", "", "Read it later.", "train.py", 3, 9, "CTRL", steers=True)
    filtered = WaitingLine("transformers", "", "Set nan_filter=False.", "train.py", 3, 9, "CHECK", steers=False)
    logged = WaitingLine("transformers", "", "Set logging_steps=50.", "train.py", 3, 9, "LOG", steers=False)
    assert [reason_for(place, reasons) for place in (read, filtered, logged)] == ["it steers", "it filters", ""]


@pytest.mark.parametrize(
    ("text", "why"), [("use(x)\n", "it runs only twice in this run"), ("for y in x:\n    y\n", "")]
)
def test_a_loop_over_batches_runs_as_often_as_it_turns(text: str, why: str) -> None:
    """Its loader is evaluated once in each epoch; each turn of the loop waits for a batch."""
    nodes = ast.walk(ast.parse(text))
    twice = {number: Observations(count=2) for number, node in enumerate(nodes) if getattr(node, "lineno", 0) == 1}
    place = WaitingLine("accelerate", "", "", "train.py", 1, 32, "PAGEABLE", steers=False)
    assert runs_seldom(File(Text("train.py", text), Observed(seen=twice)), place) == why
