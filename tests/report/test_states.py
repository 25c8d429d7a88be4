"""Syncs and launches together, in rows."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.model.states import COMPILE, EAGER, REDUCE_OVERHEAD, ProjectedState, States
from syncscan.report.states import blocks
from tests.report.example import analysis

PAIR = ProjectedState(REDUCE_OVERHEAD, True, 3_100.0, (2_600.0, 4_200.0))
STATES = States(
    baseline_us=21_300.0,
    each=(
        ProjectedState(EAGER, True, 21_200.0, (20_000.0, 22_000.0)),
        ProjectedState(COMPILE, False, 24_000.0, (21_000.0, 27_000.0)),
        PAIR,
    ),
    breaking=("item-1",),
    eager_frames=True,
    pair=PAIR,
    alone_us=(0.0, 0.0),
)


def rows(states: States) -> list[str]:
    (fold,) = blocks(replace(analysis(), states=states))
    return [" · ".join(row) for row in fold.blocks[0].rows]


def test_the_states_are_rows_with_what_they_change() -> None:
    """The step as it is first; without its syncs alone it is on the first screen."""
    assert rows(STATES) == [
        "with its syncs, as it is · 21.3 ms ·  · ",
        "with its syncs, compiled · 24.0 ms · 21.0 to 27.0 · 13% longer",
        "syncs removed, compiled (reduce-overhead) · 3.1 ms · 2.6 to 4.2 · 85% shorter",
    ]


def test_without_syncs_nothing_is_reported_of_them() -> None:
    """Only how the step launches."""
    plain = replace(STATES, each=(ProjectedState(COMPILE, False, 10_000.0, (9_000.0, 11_000.0)),))
    assert [row.partition(" · ")[0] for row in rows(plain)] == ["as it is", "compiled"]
