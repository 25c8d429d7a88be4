"""A capture stores which steps of a run count, and which work between them is the run's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.capture import capture_run, run_watch
from syncscan.capture.run_watch import RunWatch
from syncscan.capture.session import profile

MS = 1_000_000


class Clock:
    """A clock that goes on when it is told to."""

    now = 0

    def monotonic_ns(self) -> int:
        return self.now

    def work(self, ms: float) -> None:
        self.now += round(ms * MS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    its = Clock()
    monkeypatch.setattr(run_watch, "time", its)
    return its


def test_the_capture_s_own_work_in_the_counted_steps_is_known(clock: Clock) -> None:
    """A step of 10 ms, at whose end the capture works for 0.1 ms; three samples of 0.05, one of which was disturbed."""
    run = RunWatch(sampled=False)
    run.mark()
    moments = []
    for _ in range(20):
        clock.work(10)
        run.mark()
        clock.work(0.1)
        run.resume()
        moments.append(clock.now)
    run.add([], 1, [(moments[5], 50_000), (moments[6], 50_000), (moments[7], 9 * MS), (moments[0], 50_000)])
    record = run.record()
    assert record is not None
    assert record["window"] == [3, 20]
    assert record["own_us"] == 17 * 100 + 3 * 50  # of the first steps, "starting", nothing


def test_the_step_in_which_samples_are_counted_is_disturbed(clock: Clock) -> None:
    """The trace is written again for them, which may take a second."""
    run = RunWatch(sampled=False)
    run.mark()
    for number in range(40):
        if number == 20:
            run.disturb("counting")
            clock.work(1000)
            run.end_disturbance()
        clock.work(10)
        run.mark()
    record = run.record()
    assert record is not None
    left_out = {k for first, end, _ in record["disturbed"] for k in range(first, end)}
    assert {us for k, us in enumerate(record["steps_us"]) if k not in left_out} == {10_000}


def test_a_capture_marks_the_step_in_which_it_counts_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is long, and no step of the program's own."""
    pytest.importorskip("torch")
    marked: list[str] = []
    disturb, settle = RunWatch.disturb, RunWatch.end_disturbance
    monkeypatch.setattr(RunWatch, "disturb", lambda self, why: (marked.append(why), disturb(self, why))[1])
    monkeypatch.setattr(RunWatch, "end_disturbance", lambda self: (marked.append("settle"), settle(self))[1])
    counted = capture_run.CaptureRun._between_steps
    monkeypatch.setattr(
        capture_run.CaptureRun, "_between_steps", lambda *given: (marked.append("counts"), counted(*given))[1]
    )
    with profile(tmp_path, active="auto", sample=0.6, settle=0, calibrate=2, notify=lambda text: None) as prof:
        while not prof.done:
            sum(range(20_000))
            prof.step()
    at = marked.index("counts")
    assert marked[at - 1 : at + 1] == ["counting", "counts"]
