"""Waits that are left to the author, each with a reason."""

from __future__ import annotations

import ast

import pytest

from syncscan.fixing.messages import WaitingLine
from syncscan.fixing.patch_entries import reason_for, why_left
from syncscan.fixing.proposal import Left


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
    place = WaitingLine(rule, "", "Set non_blocking=True.", "train.py", 3, 9, cause)
    assert why_left(place) == why


def test_a_reason_is_of_the_setting_that_the_wait_is_about() -> None:
    """A line that trains waits for several; what is said of a read beside a library's call isn't about the library."""
    reasons = [Left(ast.Pass(), "it steers"), Left(ast.Pass(), "it filters", "nan_filter=False")]
    read = WaitingLine("item", "", "Read it later.", "train.py", 3, 9, "CTRL")
    filtered = WaitingLine("transformers", "", "Set nan_filter=False.", "train.py", 3, 9, "CHECK")
    logged = WaitingLine("transformers", "", "Set logging_steps=50.", "train.py", 3, 9, "LOG")
    assert [reason_for(place, reasons) for place in (read, filtered, logged)] == ["it steers", "it filters", ""]
