"""Syncs and launches together, in words, in lines and in JSON."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscan.model.finding import Finding, Source
from syncscan.model.states import COMPILE, EAGER, REDUCE_OVERHEAD, ProjectedState, States
from syncscan.report.states import lines, rows, sentence
from tests.report.example import finding

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


def reads(per_step: float = 12.0) -> Finding:
    """Reads of 22 µs in a module's forward."""
    plain = finding()
    line = Source("net.py", 7, "forward", exact=True)
    return replace(plain, per_step=per_step, wait_us=22.0, module=("Denoise",), source=line)


def test_the_pair_is_one_sentence() -> None:
    """The sentence has the waits, why they prevent a compile, the gain of both changes, and the gain of each alone."""
    assert sentence(STATES, [reads()]) == (
        "These 12 syncs wait 22.0 µs, and keep `Denoise.forward` from being compiled: removed and compiled"
        " (reduce-overhead) the step takes 3.1 ms (2.6 to 4.2 ms) instead of 21.3 ms; either alone gains nothing."
    )


def test_one_sync_is_singular() -> None:
    """Grammar by how many there are in a step."""
    one = sentence(replace(STATES, alone_us=(2_700.0, 0.0)), [reads(1.0)])
    assert one.startswith("This sync waits 22.0 µs, and keeps `Denoise.forward` from")
    assert one.endswith("; removing it alone saves 2.70 ms, compiling alone gains nothing.")


@pytest.mark.parametrize(
    ("alone_us", "expected"),
    [
        ((2_700.0, 0.0), "removing them alone saves 2.70 ms, compiling alone gains nothing."),
        ((0.0, 9_000.0), "removing them alone gains nothing, compiling alone saves 9.00 ms."),
        ((100.0, 100.0), "either alone gains nothing."),
    ],
)
def test_what_either_gains_alone_is_reported_where_it_can_be_measured(
    alone_us: tuple[float, float], expected: str
) -> None:
    """Half a percent of a step can't."""
    assert sentence(replace(STATES, alone_us=alone_us), [reads()]).endswith(f"; {expected}")


def test_without_a_pair_there_is_no_sentence() -> None:
    """Nothing breaks the network's graph."""
    assert sentence(replace(STATES, pair=None, breaking=()), []) == ""


def test_a_network_that_is_not_known_is_called_the_network() -> None:
    """A trace without lines."""
    nowhere = replace(reads(), module=(), source=None)
    assert "keep the network from" in sentence(STATES, [nowhere])


def test_the_states_are_lines_with_what_they_change() -> None:
    """The step as it is first; a change that can't be measured isn't said."""
    assert list(lines(STATES)) == [
        "with its syncs, as it is: 21.3 ms",
        "syncs removed, as it is: 21.2 ms (20.0 to 22.0 ms)",
        "with its syncs, compiled: 24 ms (21 to 27 ms), 13% longer",
        "syncs removed, compiled (reduce-overhead): 3.1 ms (2.6 to 4.2 ms), 85% shorter",
    ]


def test_without_syncs_nothing_is_reported_of_them() -> None:
    """Only how the step launches."""
    plain = replace(STATES, each=(ProjectedState(COMPILE, False, 10_000.0, (9_000.0, 11_000.0)),))
    assert [row.name for row in rows(plain)] == ["as it is", "compiled"]
