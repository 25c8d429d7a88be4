"""The timeline draws the states of the table too, and says what it doesn't show of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.states import COMPILE, EAGER, REDUCE_OVERHEAD
from syncscan.report import html
from syncscan.report.timeline import timeline
from tests.builder import TraceBuilder
from tests.networks import LAYER, launch_bound, ops, read
from tests.report.test_timeline import unpack

TRAINER = Path(__file__).parent.parent.parent / "sample_traces" / "launches" / "trainer.json.gz"


def steps_of(analysis: Analysis) -> list[dict[str, Any]]:
    """The projected steps in the page's data."""
    steps: list[dict[str, Any]] = timeline(analysis)["without"]
    return steps


def test_states_follow_the_steps_without_syncs_in_the_order_of_the_table() -> None:
    """The state that is drawn as the step without syncs already is that one."""
    steps = steps_of(launch_bound(reads=10))
    assert [(step["launches"], step["findings"]) for step in steps] == [
        (["", EAGER], [0]),
        ([COMPILE], []),
        ([COMPILE], [0]),
        ([REDUCE_OVERHEAD], []),
        ([REDUCE_OVERHEAD], [0]),
    ]


def test_a_state_is_named_by_its_syncs_and_by_how_it_launches() -> None:
    """The words follow those of the step."""
    assert [step["name"] for step in steps_of(launch_bound(reads=10))][1:] == [
        "with its syncs, compiled",
        "with its syncs removed, compiled",
        "with its syncs, compiled (reduce-overhead)",
        "with its syncs removed, compiled (reduce-overhead)",
    ]
    assert [step["name"] for step in steps_of(launch_bound())] == ["compiled", "compiled (reduce-overhead)"]


def test_states_are_of_the_step_that_is_drawn_without_all_syncs() -> None:
    """One ruler: all begin with that step, and end where they are projected to."""
    analysis = launch_bound(reads=10)
    steps, states = steps_of(analysis), analysis.states
    assert states is not None
    assert len({(step["of"], step["start"], step["recorded"]) for step in steps}) == 1
    shares = [(step["end"] - step["start"]) / (step["recorded"] - step["start"]) for step in steps]
    assert shares == pytest.approx([state.us / states.baseline_us for state in states.each], abs=0.02)


def test_what_is_not_drawn_is_reported() -> None:
    """Fused kernels, and the place of what a compile costs in vain; nothing of a step that only lacks its syncs."""
    plain, in_vain, compiled, eager, _ = (step["untold"] for step in steps_of(launch_bound(reads=10)))
    assert plain == ""
    assert in_vain.startswith(
        "The syncs break its graph in a loop, so that part stays eager; what a compile then costs,"
    )
    assert in_vain.endswith(" is drawn at the step's end, since where it falls isn't known.")
    assert compiled == (
        "Kernels keep their recorded names; those that a compile fuses into others, or that only the syncs needed,"
        " aren't drawn: 9 of 120."
    )
    assert eager == "The syncs break its graph in a loop, so that part stays eager."


def test_fused_kernels_are_not_drawn() -> None:
    """The lane of the stream has only those that are left; with the syncs, all are."""
    drawn = timeline(launch_bound(reads=10))
    lane = next(
        (at, number)
        for at, group in enumerate(drawn["groups"])
        for number, lane in enumerate(group["lanes"])
        if lane["kind"] == "stream"
    )
    counts = [
        sum(len(unpack(part["dur"])) for part in step["lanes"] if (part["group"], part["lane"]) == lane)
        for step in drawn["without"]
    ]
    assert counts == [120, 120, 111, 120, 111]


def test_a_pair_that_keeps_other_syncs_is_drawn_too() -> None:
    """Behind the table's states, without those syncs alone that break the graph; work that goes with syncs is named."""
    analysis = api.analyze(TRAINER)
    steps, states = steps_of(analysis), analysis.states
    assert states is not None
    last = steps[-1]
    assert tuple(analysis.findings[number].id for number in last["findings"]) == states.breaking
    assert last["name"] == "with only its graph-breaking syncs removed, compiled (reduce-overhead)"
    eager = next(step for step in steps if step["launches"] == [EAGER])
    assert eager["name"] == "without its syncs and what only they needed"
    assert re.fullmatch(r"Device work that only the syncs needed isn't drawn: \d+ of \d+ pieces\.", eager["untold"])


def test_a_state_that_does_not_fit_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row has no button; the others keep theirs."""
    analysis = launch_bound(reads=10)
    monkeypatch.setattr("syncscan.report.timeline_projected.MAX_REPLAYED", 120 + 115)
    assert [step["launches"] for step in steps_of(analysis)] == [["", EAGER], [COMPILE]]
    assert steps_of(analysis)[1]["findings"] == [0]
    buttons = re.findall(r'class="state" data-drawn="(\d*)"[^>]*>([^<]*)<', html.render(analysis))
    assert buttons == [
        ("", "with its syncs, as it is"),
        ("0", "syncs removed, as it is"),
        ("1", "syncs removed, compiled"),
    ]


def test_each_row_of_the_table_leads_to_its_step() -> None:
    """And so does the first change, which is both."""
    page = html.render(launch_bound(reads=10))
    buttons = re.findall(r'class="state" data-drawn="(\d*)"[^>]*>([^<]*)<', page)
    assert buttons == [
        ("", "with its syncs, as it is"),
        ("0", "syncs removed, as it is"),
        ("1", "with its syncs, compiled"),
        ("2", "syncs removed, compiled"),
        ("3", "with its syncs, compiled (reduce-overhead)"),
        ("4", "syncs removed, compiled (reduce-overhead)"),
    ]
    assert re.search(r'id="r0" data-kind="remedy" data-without="4"', page)


def test_a_change_that_keeps_other_syncs_leads_to_a_step_that_keeps_them() -> None:
    """A read in the training loop breaks no graph: the first change is without those in the network alone."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=2000):
        at = start + 10.0
        for _ in range(10):
            at = ops(t, LAYER * 5, read(t, at) + 1)
        read(t, at, line=90, function="train", module="")
    analysis = api.analyze_trace(t.trace(), step_ms=2.0)
    (number,) = re.findall(r'id="r0" data-kind="remedy" data-without="(\d+)"', html.render(analysis))
    step, states = steps_of(analysis)[int(number)], analysis.states
    assert states is not None
    assert step["launches"] == [REDUCE_OVERHEAD]
    assert tuple(analysis.findings[place].id for place in step["findings"]) == states.breaking
    assert len(analysis.findings) > len(states.breaking)


def test_without_syncs_compiled_states_are_drawn_all_the_same() -> None:
    """Nothing is hatched at first, and nobody is told that there is no projection."""
    drawn = timeline(launch_bound())
    assert [step["launches"] for step in drawn["without"]] == [[COMPILE], [REDUCE_OVERHEAD]]
    assert drawn["why_none"] == ""
