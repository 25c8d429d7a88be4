"""Facts about replaying a step with a change: host time cut, or device work shortened."""

from __future__ import annotations

import pytest

from syncscan.model.habit import Change
from syncscan.whatif.build import build
from syncscan.whatif.replay import Replay, period
from syncscan.whatif.replayed_steps import find_steps, with_change
from tests.builder import TraceBuilder


def trace():
    """Steps of 1000 µs: the host computes for 500, launches 300 µs of work, then idles till the step's end."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.scope("compute", start + 10, start + 510):
            pass
        with t.scope("frozen", start + 520, start + 530):
            t.launch("encode", at=start + 521, lasts=300)
        t.launch("train", at=start + 540, lasts=300)
    return t.trace()


def step_us(trace, change):
    return period(Replay(build(with_change(find_steps(trace, []), change)))) / 1e3


def rows(trace, name):
    return [r for r in range(len(trace.slices)) if trace.name(r) == name]


def intervals(trace, name):
    s = trace.slices
    return tuple((int(s.track[r]), int(s.ts[r]), int(s.end[r])) for r in rows(trace, name))


def test_an_empty_change_changes_nothing():
    """The replay of the step as it was."""
    t = trace()
    assert step_us(t, Change()) == pytest.approx(period(Replay(build(find_steps(t, [])))) / 1e3)


def test_host_time_that_is_cut_makes_the_step_shorter_until_the_device_sets_the_pace():
    """500 of 1000 µs of the host go, but the device is busy for 600."""
    t = trace()
    assert step_us(t, Change()) == pytest.approx(1000, rel=0.01)
    assert step_us(t, Change(host=intervals(t, "compute"))) == pytest.approx(600, rel=0.02)


def test_overlapping_cuts_are_cut_once():
    """An interval given twice is cut once."""
    t = trace()
    once = intervals(t, "compute")
    assert step_us(t, Change(host=once + once)) == pytest.approx(step_us(t, Change(host=once)))


def test_shortened_work_counts_only_where_the_device_is_the_limit():
    """With the host's 500 µs it gains nothing, without them it does."""
    t = trace()
    work = tuple((r, 0.1) for r in rows(t, "encode"))
    assert step_us(t, Change(work=work)) == pytest.approx(1000, rel=0.01)
    assert step_us(t, Change(work=work, host=intervals(t, "compute"))) == pytest.approx(500, rel=0.02)
