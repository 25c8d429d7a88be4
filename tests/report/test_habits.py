"""Facts about what is told of habits."""

from __future__ import annotations

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from syncscan.model.finding import Source
from syncscan.model.habit import Basis, HabitFacts, Split
from syncscan.model.json_text import written
from syncscan.report import render, story
from tests.report.example import LAUNCHES, TIMED, analysis, finding, of_habit, typical


def told(*habits):
    """Return the report's texts on habits, of a step of 10 ms."""
    return [story.habit_text(habit, 10_000.0) for habit in habits]


def test_a_projection_is_distinguished_from_a_bound_and_from_a_spoilt_measurement():
    """Three different words for three different things."""
    bound = replace(LAUNCHES, basis=Basis.UPPER_BOUND)
    messages = [(h.saves, h.doubt) for h in told(LAUNCHES, bound, TIMED)]
    assert messages == [
        ("3.0 ms (30%)", "2.0 to 3.5 ms"),
        ("at most 3.00 ms (30%)", "not projected"),
        ("distorts the measurement", ""),
    ]


def test_the_innermost_scope_says_where():
    """The outer ones are long and tell little."""
    assert [h.where for h in told(LAUNCHES, TIMED)] == ["step", ""]


def test_what_splits_a_step_is_reported_with_its_line():
    """And how often it comes per step."""
    twice = replace(LAUNCHES.splits[0], per_step=2)
    assert dict(story.graphs(replace(LAUNCHES, splits=(twice,)))) == {
        "prevents a single graph": "aten::nonzero in mask (detect.py:42), 2 per step",
    }


def test_of_many_things_in_the_way_the_first_are_named_and_the_rest_counted():
    """Four."""
    line = dict(story.graphs(replace(LAUNCHES, splits=LAUNCHES.splits * 9)))["prevents a single graph"]
    assert line.count("detect.py:42") == 4
    assert line.endswith("; and 5 more")


@pytest.mark.parametrize("form", ["text", "markdown", "html", "fragment"])
def test_each_is_shown_with_what_proves_it_and_what_to_do(form):
    """Evidence, launches that a graph can hold, what is in the way, fix."""
    options = {"verbose": True} if form in ("text", "markdown") else {}
    shown = " ".join(render(typical(), form, **options).replace("\\", "").replace("&#34;", '"').split())
    for words in (
        "420 launches per step; the device is busy 76% of it",
        "aten::nonzero in mask (detect.py:42)",
        'torch.compile(mode="reduce-overhead") or a CUDA graph',
        "distorts the measurement",
    ):
        assert words in shown


def test_of_many_a_table_has_each_and_the_details_what_proves_it():
    """Behind the first screen, which shows what gains most and says where the rest is."""
    many = replace(analysis(finding()), habits=tuple(replace(LAUNCHES, id=f"launch-bound-{k}") for k in range(11)))
    assert "launch-bound ·" not in render(many, "text")
    assert "More   -v" in render(many, "text").splitlines()
    verbose = render(many, "text", verbose=True)
    assert verbose.count("launch-bound ·") == 11
    assert verbose.count("420 launches per step") == 11


def test_a_fix_is_not_reported_twice_on_a_screen():
    """The fix of the habit that leads the list of changes stands there alone."""
    leads = replace(analysis(), habits=(LAUNCHES,), remedies=(of_habit(LAUNCHES),))
    assert render(leads, "text").count("reduce-overhead") == 1


def test_the_json_holds_what_splits_a_step():
    """In µs a step, null where nothing is known."""
    read = Split(what="a read", source=Source("a/train.py", 7, "f", True), finding="id", per_step=2, us=0)
    document = to_builtins(written(HabitFacts, replace(LAUNCHES, splits=(read,))))
    source = {"file": "a/train.py", "line": 7, "function": "f", "exact": True}
    assert document["splits"] == ({"what": "a read", "source": source, "finding": "id", "per_step": 2, "us": 0},)


def test_the_json_holds_the_same():
    """Added to an analysis under `habits`."""
    document = to_builtins(written(HabitFacts, LAUNCHES))
    assert document["recoverable_range_us"] == (2000.0, 3500.0)
    assert document["basis"] == "replay"
    assert document["area"] == "device"
