"""One step drawn without syncs and launched another way: it ends where it is projected to, with the replay's work."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.projection import Schedule
from syncscan.model.states import COMPILE, EAGER, REDUCE_OVERHEAD
from syncscan.whatif.projector import Projector
from tests.each import each
from tests.networks import launch_bound
from tests.recordings import analyzed

RECORDED = Path(__file__).parent.parent.parent / "sample_traces" / "launches"
RECORDINGS = ("denoising", "lightning_mlp", "mlp_logged", "trainer", "transformer", "vision")
CLOCK_NS = 3_000
"""By how much recorded pieces of one stream overlap at the most, for its clock: the replay keeps that."""
WAYS = [(EAGER, ("all",)), (COMPILE, ()), (COMPILE, ("all",)), (REDUCE_OVERHEAD, ()), (REDUCE_OVERHEAD, ("all",))]


@cache
def recorded(name: str) -> Analysis:
    """A recording of a step that its launches hold."""
    return analyzed(RECORDED / f"{name}.json.gz")


def drawn(analysis: Analysis, launches: str | None, *remove: str, at: int | None = None) -> Schedule:
    """One step as it would run."""
    plan = analysis.schedule(*remove, launches=launches, at=at)
    assert plan is not None
    return plan


@pytest.mark.parametrize(("launches", "remove"), WAYS)
@each("name", RECORDINGS)
def test_drawn_steps_end_where_the_projection_says(name: str, launches: str, remove: tuple[str, ...]) -> None:
    """All replayed steps together take the projected part of their recorded time; one alone may differ a bit more.

    What a compiled network's calls cost is as long in a short step as in a long one, so it is more of the short one.
    """
    analysis = recorded(name)
    assert isinstance(analysis.projector, Projector)
    begins = [step.begin for step in analysis.projector.steps.intervals]
    plans = [drawn(analysis, launches, *remove, at=begin) for begin in begins]
    p = analysis.whatif(*remove, launches=launches)
    parts = [(plan.replayed_end - plan.begin) / (plan.end - plan.begin) for plan in plans]
    whole = sum(plan.replayed_end - plan.begin for plan in plans) / sum(plan.end - plan.begin for plan in plans)
    assert whole == pytest.approx(p.predicted_us / p.baseline_us, abs=0.015)
    assert parts == pytest.approx([p.predicted_us / p.baseline_us] * len(parts), rel=0.04, abs=0.04)


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_device_does_the_work_that_a_compile_leaves(name: str) -> None:
    """Each piece lasts the part of its recorded time that the change leaves; what is fused into others takes none."""
    analysis = recorded(name)
    assert isinstance(analysis.projector, Projector)
    plan, now = drawn(analysis, COMPILE), drawn(analysis, None)
    left = dict(analysis.projector.joint(COMPILE).change([]).work)
    expected = now.dur * np.array([left.get(int(row), 1.0) for row in now.rows])
    by_row = dict(zip(plan.rows.tolist(), plan.dur.tolist(), strict=True))
    assert [by_row[row] for row in now.rows.tolist()] == pytest.approx(expected.tolist(), abs=5)
    assert 0 < plan.dur.sum() <= now.dur.sum()


@pytest.mark.parametrize("name", RECORDINGS)
def test_work_of_a_stream_never_overlaps(name: str) -> None:
    """Compiled with CUDA graphs and without syncs, one piece follows the other, but for the clock."""
    analysis = recorded(name)
    plan = drawn(analysis, REDUCE_OVERHEAD, "all")
    streams = analysis.trace.slices.track[plan.rows]
    for stream in set(streams.tolist()):
        own = (streams == stream) & (plan.dur > 0)
        order = np.argsort(plan.start[own], kind="stable")
        start, end = plan.start[own][order], (plan.start + plan.dur)[own][order]
        assert (start[1:] >= end[:-1] - CLOCK_NS).all()


def test_what_frames_cost_that_stay_eager_is_at_the_step_s_end() -> None:
    """A sync in a loop: dynamo's work in vain is part of the step's length, and no launch moves for it."""
    analysis = launch_bound(reads=10)
    plan, now = drawn(analysis, COMPILE), drawn(analysis, None)
    p = analysis.whatif(launches=COMPILE)
    assert plan.unplaced > 0
    assert plan.replayed_end - plan.unplaced == pytest.approx(now.replayed_end, abs=1_000)
    assert (plan.replayed_end - plan.begin) / (plan.end - plan.begin) == pytest.approx(
        p.predicted_us / p.baseline_us, abs=0.015
    )
    assert now.unplaced == drawn(analysis, COMPILE, "all").unplaced == 0


def test_an_unknown_way_to_launch_is_refused() -> None:
    """As `whatif` refuses it."""
    with pytest.raises(UsageError, match="no way to launch"):
        launch_bound().schedule(launches="faster")
