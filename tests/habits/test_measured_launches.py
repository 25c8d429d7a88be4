"""The projection of `launch-bound` holds the step times that were measured with a CUDA graph or a compile.

Recorded and measured on an H200 with torch 2.11 by `benchmarks/launches.py`. Its host's speed drifts by some 20 % from
one minute to the next: shares of the step are compared, each variant timed in turn with the step as it is.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from syncscan.model.habit import Habit
from tests.recordings import analyzed

FOLDER = Path(__file__).parent.parent.parent / "sample_traces" / "launches"
TRUTH = json.loads((FOLDER / "truth.json").read_text())


def gain(name: str) -> tuple[Habit | None, float]:
    """Return the habit with its projected gain, None without one, and the step's time in µs."""
    analysis = analyzed(FOLDER / f"{name}.json.gz")
    matches = [h for h in analysis.habits if h.rule == "launch-bound"]
    return (matches[0] if matches else None), analysis.step.unprofiled_us


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("transformer", "graph"),
        ("mlp_logged", "compile"),
        ("denoising", "graph"),
        ("denoising", "compile"),
        ("trainer", "compile"),
        ("vision", "compile"),
    ],
)
def test_the_measured_share_lies_in_the_projected_range(name: str, variant: str) -> None:
    """One graph of the whole step, and a network that was compiled alone; by its own option in the Trainer."""
    result, step_us = gain(name)
    low, high = (us / step_us for us in result.recoverable_range_us)
    assert low <= 1 - TRUTH[name][variant] / TRUTH[name]["eager"] <= high


def test_one_graph_of_a_whole_step_is_projected_within_a_tenth_of_it() -> None:
    """A graph left 35 % of a transformer's step."""
    result, step_us = gain("transformer")
    measured = 1 - TRUTH["transformer"]["graph"] / TRUTH["transformer"]["eager"]
    assert result.recoverable_us / step_us == pytest.approx(measured, abs=0.1)


def test_where_a_compile_saves_next_to_nothing_nothing_is_reported() -> None:
    """A small network under Lightning: 4.46 ms, compiled 4.18; its bar takes 0.5."""
    assert gain("lightning_mlp")[0] is None
    assert TRUTH["lightning_mlp"]["compile"] > 0.9 * TRUTH["lightning_mlp"]["eager"]
