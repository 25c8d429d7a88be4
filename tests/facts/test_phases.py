"""The phases of a served trace: how many steps each has and how long one takes."""

from __future__ import annotations

from syncscan.facts.period import PhaseSummary, phases_of
from syncscan.model.step_marks import ServingPhase
from tests.builder import TraceBuilder


def served(*steps: tuple[str, float]) -> TraceBuilder:
    """Ranges of these names and lengths, one behind the other, with a launch in each."""
    t, at = TraceBuilder(), 0.0
    for name, lasts in steps:
        with t.scope(name, at, at + lasts):
            t.launch(at=at + 1, lasts=10)
        at += lasts
    return t


def test_steps_are_grouped_by_phase_and_batch() -> None:
    """Prefill first; of one phase what takes the most time in all."""
    t = served(
        ("step[EXTEND bs=2 toks=900]", 5000),
        ("step[DECODE bs=1]", 700),
        ("step[DECODE bs=2]", 1000),
        ("step[DECODE bs=2]", 1200),
        ("step[DECODE bs=2]", 4000),
    )
    assert phases_of(t.trace()) == (
        PhaseSummary(ServingPhase.PREFILL, 2, 1, 5000.0),
        PhaseSummary(ServingPhase.DECODE, 2, 3, 1200.0),
        PhaseSummary(ServingPhase.DECODE, 1, 1, 700.0),
    )


def test_steps_of_one_phase_need_no_table() -> None:
    """The step's own numbers say all; so they do where no framework marks the steps."""
    assert phases_of(served(("step[DECODE bs=2]", 1000), ("step[DECODE bs=4]", 1000)).trace()) == ()
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.launch(at=start + 1, lasts=10)
    assert phases_of(t.trace()) == ()
