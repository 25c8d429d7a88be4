"""A view passes some findings, and counts the hidden ones by the option that hides them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscan.model.finding import Severity
from syncscan.model.habit import Basis
from syncscan.model.view import Hidden, View, ranked, shown
from tests.report.example import EXPLICIT, LAUNCHES, TIMED, UNPROJECTED, finding

BIG, SMALL = finding("big"), finding("small", recoverable_us=50.0, recoverable_range_us=(0.0, 90.0), moved_us=0.0)
UNKNOWN = finding("unknown", **UNPROJECTED)
INTENDED = replace(finding("intended"), **EXPLICIT, severity=Severity.INFO)
STEP = 10_000.0


def ids(view: View) -> list[str]:
    return [x.id for x in shown(view, [BIG, SMALL, UNKNOWN, INTENDED], [LAUNCHES, TIMED], STEP).ranked]


def test_findings_and_habits_are_one_list() -> None:
    """By what each saves; what isn't projected behind it, and waits that are meant last."""
    assert ids(View()) == ["big", LAUNCHES.id, "small", "unknown", TIMED.id, "intended"]


def test_an_upper_bound_stands_behind_what_was_replayed() -> None:
    """However large it is: it is no promise."""
    bound = replace(LAUNCHES, recoverable_us=1e9, basis=Basis.UPPER_BOUND)
    assert ranked([SMALL], [bound]) == [SMALL, bound]


@pytest.mark.parametrize(
    ("view", "left"),
    [
        (View(select=("launch-*",)), [LAUNCHES.id]),
        (View(select=("nonzero", "explicit-sync")), ["big", "small", "unknown", "intended"]),
        (View(ignore=("n*", "garbage-collection")), [LAUNCHES.id, "intended"]),
        (View(least_us=100.0), ["big", LAUNCHES.id, "unknown", TIMED.id, "intended"]),
        (View(least_share=0.5), ["big", "unknown", TIMED.id, "intended"]),
        (View(top=2), ["big", LAUNCHES.id]),
    ],
)
def test_each_option_hides_what_it_says(view: View, left: list[str]) -> None:
    """A finding without a projection isn't known to save less."""
    assert ids(view) == left


def test_only_the_users_code() -> None:
    """Habits have no owner and stay."""
    library = replace(BIG, owner="framework", id="library")
    result = shown(View(user_only=True), [library, SMALL], [LAUNCHES], STEP)
    assert [x.id for x in result.ranked] == [LAUNCHES.id, "small"]
    assert result.hidden == (Hidden("--user-only", 1, 0),)


def test_what_two_options_hide_counts_once() -> None:
    """For the first of them."""
    result = shown(View(ignore=("launch-bound",), top=1), [BIG, SMALL], [LAUNCHES, TIMED], STEP)
    assert result.hidden == (Hidden("--ignore", 0, 1), Hidden("--top", 1, 1))
    assert (result.findings, result.habits) == ((BIG,), ())
