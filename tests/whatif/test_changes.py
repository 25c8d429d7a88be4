"""Facts about replaying a step with a change: host time cut, device work shortened, or moved ahead."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan import api
from syncscan.model.habit import Change
from syncscan.model.interval import ThreadInterval
from syncscan.whatif.build import build
from syncscan.whatif.projector import Projector
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
    return period(Replay(build(find_steps(trace, [], change=change)))) / 1e3


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


def test_work_ahead_runs_beside_the_rest():
    """Two streams of 300 µs each instead of one of 600; then the host's 500 µs are the limit."""
    t = trace()
    both = Change(host=intervals(t, "compute"), ahead=intervals(t, "frozen"))
    assert step_us(t, both) == pytest.approx(500, rel=0.02)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: Change(host=tuple(ThreadInterval(*i) for i in intervals(t, "compute"))),
        lambda t: Change(work=tuple((row, 0.5) for row in rows(t, "encode"))),
        lambda t: Change(
            host=tuple(ThreadInterval(*i) for i in intervals(t, "frozen")),
            work=tuple((row, 0.0) for row in rows(t, "train")),
        ),
    ],
    ids=["host", "work", "both"],
)
def test_a_change_of_found_steps_is_the_change_they_would_be_found_with(change):
    """Looked for anew with it, or changed as found: the same steps, so that the replay takes the same time."""
    recorded = trace()
    anew, changed = (
        find_steps(recorded, [], change=change(recorded)),
        with_change(find_steps(recorded, []), change(recorded)),
    )
    assert (changed.left_out, changed.busy_ns, changed.waits) == (anew.left_out, anew.busy_ns, anew.waits)
    assert changed.launches.end.tolist() == anew.launches.end.tolist()
    assert period(Replay(build(changed))) == period(Replay(build(anew)))


def test_habits_of_recordings_are_projected_the_same_either_way(monkeypatch):
    """On a real step with waits, copies and hundreds of launches too."""
    path = Path(__file__).parent.parent.parent / "sample_traces" / "launches" / "mlp_logged.json.gz"
    changed = [(h.id, h.gain) for h in api.analyze(path).habits]
    monkeypatch.setattr(
        Projector, "changed", lambda self, change: build(find_steps(self.trace, self.points, change=change))
    )
    assert [(h.id, h.gain) for h in api.analyze(path).habits] == changed
