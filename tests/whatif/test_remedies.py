"""Syncs and habits in one list: by gain, each replayed on top of those above it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from syncscan import api
from syncscan.model.habit import Basis
from syncscan.whatif import Projector
from syncscan.whatif.remedies import remedies_of
from tests.builder import TraceBuilder

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def step(loading=600.0, launches=200, read=True, length=4200):
    """Three steps: a loader, many launches, and a read-back that waits for the last of them."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": float(length)})
    for start in t.steps(3, lasts=length):
        t.scope(LOADER, start + 1, start + 1 + loading)
        for k in range(launches):
            t.launch("tiny", at=start + loading + 10 + 12 * k, lasts=1)
        if read:
            begin = start + loading + 20 + 12 * launches
            t.launch("busy", at=begin, lasts=300)
            t.op("aten::item", begin + 10, begin + 360)
            t.copy("Memcpy DtoH (Device -> Pinned)", at=begin + 12)
            t.call("cudaStreamSynchronize", begin + 25, begin + 350)
    return api.analyze_trace(t.trace())


def test_syncs_and_habits_stand_in_one_list_by_what_they_gain():
    """The launches, the loader and the read-back, with ranges that hold the gain."""
    remedies = step().remedies
    kinds = [r.habit.rpartition("-")[0] or "sync" for r in remedies]
    assert set(kinds) == {"launch-bound", "loader-no-workers", "sync"}
    assert [r.alone_us for r in remedies] == sorted((r.alone_us for r in remedies), reverse=True)
    assert all(r.range_us[0] <= r.alone_us <= r.range_us[1] for r in remedies)


def test_a_sync_gains_in_the_list_what_its_finding_says():
    """As much, and in the same range."""
    analysis = api.analyze("sample_traces/logged.pt.trace.json.gz")
    first, (remedy,) = analysis.findings[0], (r for r in analysis.remedies if r.findings)
    limits = first.recoverable_range_us or ()
    assert (remedy.alone_us, *remedy.range_us) == pytest.approx((first.recoverable_us, *limits))


def test_the_first_gains_what_it_gains_alone():
    """Nothing stands above it."""
    first = step().remedies[0]
    assert first.after_us == pytest.approx(first.alone_us, rel=1e-6)


def test_what_the_first_saves_of_another_habit_is_left_to_that_one():
    """The replay of a graph also takes out what another habit is about; its gain alone leaves that out."""
    analysis = step(read=False)
    loader, launches = (
        next(h for h in analysis.habits if h.rule == rule) for rule in ("loader-no-workers", "launch-bound")
    )
    bounded = replace(launches, recoverable_us=1000.0)
    projector = Projector(analysis.trace, analysis.findings, analysis.step.unprofiled_us)
    first, second = remedies_of(projector, analysis.findings, (), (bounded, loader))
    assert (first.habit, first.alone_us, first.after_us) == (launches.id, 1000.0, pytest.approx(1000.0))
    together = remedies_of(projector, analysis.findings, (), (launches, loader))
    assert first.after_us + second.after_us == pytest.approx(sum(r.after_us for r in together))


def test_what_two_share_is_gained_once():
    """The host could launch while the read waits: without launches there is another wait."""
    matches = {r.habit.rpartition("-")[0] or "sync": r for r in step(loading=0.0).remedies}
    launches, read = matches["launch-bound"], matches["sync"]
    assert read.after_us != pytest.approx(read.alone_us, rel=0.05)
    assert launches.after_us + read.after_us <= 4200


def test_a_sync_alone_is_a_list_of_one():
    """It names the finding's id."""
    analysis = step(loading=0.0, launches=5)
    (only,) = analysis.remedies
    assert only.findings == (analysis.findings[0].id,)
    assert only.basis is Basis.REPLAY


def test_without_a_replay_there_is_no_list():
    """A trace of a CPU."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        t.op("aten::add", start + 1, start + 50)
    assert api.analyze_trace(t.trace()).remedies == ()


@given(st.floats(0, 900), st.integers(0, 200), st.booleans())
def test_all_together_gain_no_more_than_the_step(loading, launches, read):
    """Each adds zero or more, and the sum stays within the step."""
    analysis = step(loading, launches, read)
    after = [r.after_us for r in analysis.remedies if r.after_us is not None]
    assert all(us >= 0 for us in after)
    assert sum(after) <= 1.01 * analysis.step.unprofiled_us


def test_eight_remedies_are_replayed_on_top_of_one_another():
    """They are the eight of ten habits that gain the most, each with a gain of its own."""
    analysis = step(read=False)
    (habit,) = [h for h in analysis.habits if h.rule == "launch-bound"]
    habits = [replace(habit, id=f"launch-bound-{k}", recoverable_us=100.0 + k) for k in range(10)]
    projector = Projector(analysis.trace, analysis.findings, analysis.step.unprofiled_us)
    result = remedies_of(projector, analysis.findings, (), habits)
    assert [r.alone_us for r in result] == [109.0, 108.0, 107.0, 106.0, 105.0, 104.0, 103.0, 102.0]
