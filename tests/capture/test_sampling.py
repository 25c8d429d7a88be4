"""The last steps of a capture are sampled: what is counted, where it is stored, and that nothing suffers from it."""

from __future__ import annotations

import functools
import gzip
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from syncscan import api
from syncscan.capture import capture_run, device, main_script, sampling, sync_lines
from syncscan.capture.plan import Plan
from syncscan.capture.sampling import (
    LEAST_SAMPLES,
    RATE,
    RATES,
    SETTLE,
    NotSampled,
    Row,
    Sampling,
    rate_of,
    tree,
)
from syncscan.capture.session import NO_DEVICE, Session, profile
from syncscan.facts.program_phases import Frame

torch = pytest.importorskip("torch")

QUICK: dict[str, Any] = {"settle": 0, "calibrate": 2, "wait": 0, "warmup": 1, "active": 1}
BEFORE = 4
"""Steps of such a capture before it samples."""
CODE = compile("def main(): pass", "/home/me/train.py", "exec").co_consts[0]
RUNNER = main_script.__file__
OURS = str(Path(main_script.__file__).parent / "session.py")


class FakeTicks:
    """Sees a thread a hundred times a second in the same function; a step takes a second of its own clock."""

    now = 0.0
    running = 0
    reason = ""

    def __init__(self, rate: int, read: Callable[[], Any]) -> None:
        self.read = read
        self.spent: list[tuple[int, int]] = []
        if self.reason:
            raise NotSampled(self.reason)
        self.began: float | None = None
        FakeTicks.running += 1

    def start(self) -> None:
        self.began = FakeTicks.now

    def stop(self) -> list[Row]:
        self.close()
        return [(round(100 * (FakeTicks.now - self.began)), [CODE, 0], self.read())] if self.began is not None else []

    def close(self) -> None:
        FakeTicks.running -= 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeTicks]]:
    monkeypatch.setattr(FakeTicks, "now", 0.0)
    monkeypatch.setattr(FakeTicks, "reason", "")
    monkeypatch.setattr(FakeTicks, "running", 0)
    monkeypatch.setattr(sampling, "Ticks", FakeTicks)
    monkeypatch.setattr(sampling.time, "perf_counter", lambda: FakeTicks.now)
    yield FakeTicks
    assert FakeTicks.running == 0
    Session.running = None
    sync_lines.end()


def read(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))["syncscan"]
    return table


def run(session: Session, steps: int) -> Session:
    with session as prof:
        for _ in range(steps):
            torch.ones(8).add(1)
            FakeTicks.now += 1
            prof.step()
    return prof


@pytest.mark.usefixtures("fake")
def test_the_samples_of_whole_steps_are_stored_with_their_count(tmp_path: Path) -> None:
    """Without those from before the first that counts: a hundred samples a step of a second."""
    prof = run(profile(tmp_path, sample=5.0, notify=lambda text: None, **QUICK), 20)
    host = read(prof.paths[0])["host"]
    assert (host["steps"], host["samples"]) == (5, 500)
    assert host["rate"] in RATES
    assert host["frames"] == [["/home/me/train.py", "main"]]
    assert [node[:4] for node in host["nodes"]] == [[-1, 0, 1, 500]]
    assert (prof.complete, prof.done, prof.steps) == (True, True, BEFORE + SETTLE + 5)


@pytest.mark.usefixtures("fake")
def test_long_steps_are_sampled_at_least_three_times_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of 2 s; of 20 s one."""
    for length, steps in ((2.0, 3), (20.0, 1)):
        built = Sampling(1.0)
        for _ in range(SETTLE):
            FakeTicks.now += length
            assert built.step()
        for left in range(steps - 1, -1, -1):
            FakeTicks.now += length
            assert built.step() == (left > 0)
        assert built.finish()["steps"] == steps


@pytest.mark.usefixtures("fake")
def test_what_the_program_does_after_its_last_step_is_no_step_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sleeps for two seconds; half a second of the last tick still was the step's."""
    built = Sampling(1.0)
    for _ in range(SETTLE + 1):
        FakeTicks.now += 1.0
        built.step()

    def stop(ticks: FakeTicks) -> list[Row]:
        ticks.close()
        now = ticks.read()
        late = [now._replace(at=now.at + seconds * 1_000_000_000) for seconds in (0, 1, 2)]
        return [(200, [CODE, 0], late[0]), (RATE + RATE // 2, [CODE, 0], late[1]), (RATE, [CODE, 0], late[2])]

    monkeypatch.setattr(FakeTicks, "stop", stop)
    host = built.finish()
    assert (host["steps"], host["samples"]) == (1, pytest.approx(200 + RATE // 2, abs=1))


@pytest.mark.parametrize(("work_us", "rate"), [(0.0, 193), (51.0, 193), (53.0, 139), (100.0, 97), (500.0, 67)])
def test_where_samples_are_costly_fewer_are_taken(work_us: float, rate: int) -> None:
    """At most a percent of the time goes to them, unless one takes 0.15 ms or longer."""
    assert rate_of(1e3 * work_us) == rate


@pytest.mark.usefixtures("fake")
def test_each_trace_of_a_capture_gets_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken once; what the first trace says of itself stays the first's."""
    clocks = iter(range(1, 100))
    monkeypatch.setattr(device, "clocks", lambda: {"power_w": float(next(clocks))})
    prof = run(profile(tmp_path, sample=5.0, repeat=2, notify=lambda text: None, **QUICK), 30)
    first, second = (read(path) for path in prof.paths)
    assert first["host"] == second["host"]
    assert first["clocks"]["recorded"] != second["clocks"]["recorded"]


@pytest.mark.usefixtures("fake")
def test_without_the_wish_nothing_is_sampled(tmp_path: Path) -> None:
    """In code that is the default."""
    prof = run(profile(tmp_path, notify=lambda text: None, **QUICK), 20)
    assert "host" not in read(prof.paths[0])
    assert prof.steps == BEFORE


def test_a_process_that_can_not_be_sampled_is_reported_once_and_captured(
    fake: type[FakeTicks], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The capture is as complete as ever, and takes no step longer."""
    monkeypatch.setattr(fake, "reason", "none.")
    messages: list[str] = []
    prof = run(profile(tmp_path, sample=5.0, every=BEFORE, notify=messages.append, **QUICK), 20)
    assert [s for s in messages if s != NO_DEVICE] == ["The host wasn't sampled: none."]
    assert len(prof.paths) > 2
    assert (prof.complete, prof.failed) == (True, None)


@pytest.mark.usefixtures("fake")
def test_a_loop_that_ends_while_it_is_sampled_leaves_a_whole_capture(tmp_path: Path) -> None:
    """With the whole steps that were sampled; it isn't called cut, for its cycles are whole."""
    prof = run(profile(tmp_path, sample=50.0, notify=lambda text: None, **QUICK), BEFORE + SETTLE + 2)
    assert read(prof.paths[0])["host"]["steps"] == 2
    assert (prof.complete, prof.captures) == (True, 1)


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("steps", range(BEFORE, BEFORE + SETTLE + 1))
def test_a_loop_that_ends_before_a_step_was_sampled_has_its_trace(tmp_path: Path, steps: int) -> None:
    """As if nobody had wanted samples."""
    messages: list[str] = []
    prof = run(profile(tmp_path, sample=50.0, notify=messages.append, **QUICK), steps)
    assert len(prof.paths) == 1
    assert prof.complete
    assert messages[-1] == "The host wasn't sampled: the program ended before a step was sampled."


@pytest.mark.usefixtures("fake")
def test_an_exception_while_it_is_sampled_comes_through(tmp_path: Path) -> None:
    """And what was sampled is stored."""
    prof = profile(tmp_path, sample=50.0, notify=lambda text: None, **QUICK)
    with pytest.raises(ZeroDivisionError), prof:
        run_on(prof, BEFORE + SETTLE + 3, then=ZeroDivisionError)
    assert read(prof.paths[0])["host"]["steps"] == 3


def run_on(prof: Session, steps: int, then: type[Exception] | None = None) -> None:
    for _ in range(steps):
        FakeTicks.now += 1
        prof.step()
    if then is not None:
        raise then


@pytest.mark.usefixtures("fake")
def test_sigterm_while_it_is_sampled_stores_what_there_is(tmp_path: Path) -> None:
    """And says what it kept before the process goes on to die of it."""
    messages: list[str] = []
    died: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: died.append(number))
    try:
        with profile(tmp_path, sample=50.0, notify=messages.append, **QUICK) as prof:
            run_on(prof, BEFORE + SETTLE + 2)
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(100):  # the handler runs between two instructions
                pass
    finally:
        signal.signal(signal.SIGTERM, before)
    assert died == [signal.SIGTERM]
    assert messages[-1] == f"SIGTERM in the end of a capture: kept {prof.paths[0]}."
    assert read(prof.paths[0])["host"]["steps"] == 2


@pytest.mark.usefixtures("fake")
def test_a_trace_that_was_moved_away_is_no_failure(tmp_path: Path) -> None:
    """Whoever is told of a trace may take it."""
    messages: list[str] = []
    session = profile(tmp_path, sample=5.0, notify=messages.append, **QUICK)
    session.wrote = lambda path: path.unlink()
    prof = run(session, 20)
    assert "it can't be added to the trace (No such file or directory)" in messages[-1]
    assert (prof.complete, list(tmp_path.iterdir())) == (True, [])


@pytest.mark.usefixtures("fake")
def test_a_profiler_of_the_program_s_own_is_not_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps are not as they are without one."""
    messages: list[str] = []
    session = profile(tmp_path, sample=5.0, notify=messages.append, **QUICK)
    session.wrote = lambda path: monkeypatch.setattr(capture_run.cycle_recorder, "profiling", lambda: True)
    assert run(session, 20).complete
    assert messages[-1] == "The host wasn't sampled: the program runs its own profiler."


@functools.cache
def code_of(file: str, function: str) -> CodeType:
    names = {name: function for name in ("co_name", "co_qualname") if hasattr(stack.__code__, name)}
    return stack.__code__.replace(co_filename=file, **names)  # type: ignore[arg-type]


def stack(*frames: str) -> tuple[Frame, ...]:
    """The frames `file:function:line`, outermost first."""
    return tuple((code_of(file, function), int(line)) for file, function, line in (f.split(":") for f in frames))


def test_a_tree_has_each_way_to_a_line_once() -> None:
    """One function with two callers is two nodes of one frame; counts are of the line itself."""
    main1, f5, main2, f6 = stack("a.py:main:1", "a.py:f:5", "a.py:main:2", "a.py:f:6")
    frames, nodes = tree([([2], (main1, f5)), ([1], (main1,)), ([1], (main2, f5)), ([1], (main2, f6))])
    assert frames == [["a.py", "main"], ["a.py", "f"]]
    assert nodes == [[-1, 0, 1, 1], [0, 1, 5, 2], [-1, 0, 2, 0], [2, 1, 5, 1], [2, 1, 6, 1]]


def test_the_script_runner_and_python_s_own_are_left_out() -> None:
    """As if the script ran under `python`, also for `python -m`."""
    whole = stack("/bin/syncscan:<module>:3", f"{RUNNER}:_run_path:60", "<frozen runpy>:_run_code:8", "t.py:f:1")
    assert tree([([1], whole)]) == ([["t.py", "f"]], [[-1, 0, 1, 1]])


def test_samples_of_the_capture_at_work_do_not_count() -> None:
    """A step ends in the session."""
    whole = stack("t.py:main:1", f"{OURS}:step:200", "time.py:sleep:1")
    assert tree([([1], whole), ([1], whole[:1])])[1] == [[-1, 0, 1, 1]]


def test_endless_recursion_makes_no_endless_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeper frames count for the deepest one that is stored."""
    monkeypatch.setattr(sampling, "MOST_NODES", 3)
    whole = stack(*["a.py:f:1"] * 10)
    assert tree([([1], whole)])[1] == [[-1, 0, 1, 0], [0, 0, 1, 0], [1, 0, 1, 1]]


def test_too_few_samples_are_none(monkeypatch: pytest.MonkeyPatch, fake: type[FakeTicks]) -> None:
    """Shares of them say nothing."""
    built = Sampling(0.1)
    for _ in range(SETTLE + 1):
        fake.now += 0.9 * LEAST_SAMPLES / 100
        built.step()
    with pytest.raises(NotSampled, match="90 samples are too few; 100 are needed"):
        built.finish()


def work() -> None:
    for _ in range(4000):
        sum(range(100))


def rest() -> None:
    for _ in range(1000):
        sum(range(100))


def test_a_real_capture_knows_what_its_steps_are_spent_in(tmp_path: Path) -> None:
    """The one of two functions that computes four times as much has more of them."""
    messages: list[str] = []
    with profile(tmp_path, sample=1.0, notify=messages.append, **QUICK) as prof:
        while not prof.done:
            work()
            rest()
            torch.ones(8).add(1)
            prof.step()
    unsampled = [sentence for sentence in messages if "wasn't sampled" in sentence]
    if unsampled:
        pytest.skip(unsampled[0])
    analysis = api.analyze(prof.paths[0])
    sampled = analysis.host_time.sampled
    assert sampled is not None
    share = {
        name: sum(n.us for n in sampled.nodes if n.function == name) / sampled.step_us for name in ("work", "rest")
    }
    assert share["work"] > share["rest"] > 0
    assert analysis.host.self_us.sum() == pytest.approx(sampled.step_us)


@pytest.mark.parametrize("sample", [-1.0, float("nan"), float("inf"), 1e9])
def test_times_that_mean_nothing_are_refused(sample: float) -> None:
    """Before the script runs."""
    with pytest.raises(Exception, match="sample is"):
        Plan(sample=sample)
