"""A capture of a loop on the CPU: what is written when, and what it says of itself."""

from __future__ import annotations

import gzip
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscan.capture import capture_run, cupti, device, sync_lines
from syncscan.capture.capture_run import CaptureRun
from syncscan.capture.session import NO_CALLBACKS, NO_DEVICE, Session, profile
from syncscan.errors import UsageError
from syncscan.model.step_times import StepTimes

torch = pytest.importorskip("torch")

QUICK = {"settle": 1, "calibrate": 2, "wait": 1, "warmup": 1, "active": 2, "notify": lambda sentence: None}


@pytest.fixture(autouse=True)
def no_session() -> Iterator[None]:
    yield
    Session.running = None
    sync_lines.end()


def read(path: Path) -> dict[str, Any]:
    trace: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return trace


def run(session: Session, steps: int) -> Session:
    with session as prof:
        for _ in range(steps):
            torch.ones(8).add(1)
            prof.step()
    return prof


def step_numbers(trace: dict[str, Any]) -> list[int]:
    names = (e.get("name", "") for e in trace["traceEvents"])
    return sorted(int(name.split("#")[1]) for name in names if name.startswith("ProfilerStep#"))


def test_the_schedule_decides_which_steps_are_recorded(tmp_path: Path) -> None:
    """One settles and two are timed; of the profiler's own, 0 waits, 1 warms up, 2 and 3 are recorded."""
    prof = run(profile(tmp_path, "train", **QUICK), 20)
    (path,) = prof.paths
    assert step_numbers(read(path)) == [2, 3]
    assert (prof.done, prof.complete, prof.steps) == (True, True, 7)


def test_each_cycle_writes_a_file(tmp_path: Path) -> None:
    """And torch's warning that events are cleared between cycles, which is the point of cycles, isn't shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prof = run(profile(tmp_path, "train", repeat=2, **QUICK), 20)
    assert sorted(tmp_path.iterdir()) == prof.paths
    assert [step_numbers(read(path)) for path in prof.paths] == [[2, 3], [6, 7]]


def test_the_trace_says_how_it_was_made(tmp_path: Path) -> None:
    """The keys that analysis reads."""
    prof = run(profile(tmp_path, "train", **QUICK), 20)
    table = read(prof.paths[0])["syncscan"]
    assert table["schema"] == "syncscan.capture/1"
    assert table["unprofiled_step_us"] == prof.step_us
    assert (table["calibrated_steps"], table["unfinished_step"]) == (2, None)


def test_the_unprofiled_step_is_timed(tmp_path: Path) -> None:
    """Steps that sleep 5 ms take at least that, and nothing of the half second that the first one took."""
    with profile(tmp_path, **QUICK) as prof:
        for i in range(7):
            time.sleep(0.5 if i == 0 else 0.005)
            prof.step()
    assert prof.step_us is not None
    assert 5_000 <= prof.step_us < 250_000


class Noisy:
    """Times steps as if they took now 0.8 ms, now 1.2."""

    def __init__(self, steps: int) -> None:
        """As `Calibration`."""

    def mark(self) -> None:
        """As `Calibration`."""

    def end(self) -> StepTimes:
        return StepTimes(1000.0, (800.0, 800.0, 1000.0, 1200.0, 1200.0), "device")


@pytest.mark.parametrize("used", [True, False])
def test_a_step_time_that_is_too_uncertain_to_scale_by_is_stored(
    used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the report, which says it with the command; not where no device was used: then nothing is scaled by it."""
    monkeypatch.setattr(capture_run, "StepTimer", Noisy)
    monkeypatch.setattr(device, "used", lambda: used)
    monkeypatch.setattr(device, "drain", lambda: None)
    messages: list[str] = []
    prof = run(profile(tmp_path, **{**QUICK, "notify": messages.append}), 20)
    notes = read(prof.paths[0])["syncscan"]["notes"]
    assert notes == ([Noisy(5).end().advice()] if used else [])
    assert [sentence for sentence in messages if sentence != NO_DEVICE] == []


def test_what_a_capture_leaves_switched_on_is_reported_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, in each trace from there on."""
    monkeypatch.setattr(
        cupti.Attachment, "release", lambda attachment: setattr(attachment, "attached_because", "so it is")
    )
    messages: list[str] = []
    prof = run(profile(tmp_path, repeat=2, **{**QUICK, "notify": messages.append}), 20)
    first, second = (read(path)["syncscan"]["notes"] for path in prof.paths)
    assert first == second == [messages[-1]]
    assert messages[-1].startswith("CUPTI stays attached to the captured process (so it is): until")


def test_without_calibration_the_schedule_starts_at_once(tmp_path: Path) -> None:
    """And the metadata says that nothing was measured."""
    prof = run(profile(tmp_path, **{**QUICK, "calibrate": 0}), 4)
    own = read(prof.paths[0])["syncscan"]
    assert (own["unprofiled_step_us"], own["calibrated_steps"]) == (None, 0)


def test_a_loop_that_ends_early_leaves_what_was_recorded(tmp_path: Path) -> None:
    """The step that was cut is named, so that nobody takes its length for a step's."""
    prof = run(profile(tmp_path, **QUICK), 6)
    (path,) = prof.paths
    assert read(path)["syncscan"]["unfinished_step"] == 3
    assert not prof.complete


def test_a_loop_that_ends_before_the_first_recorded_step_leaves_nothing(tmp_path: Path) -> None:
    """Not even a temporary folder."""
    prof = run(profile(tmp_path, **QUICK), 4)
    assert (prof.paths, list(tmp_path.iterdir())) == ([], [])


def test_an_exception_in_the_loop_comes_through(tmp_path: Path) -> None:
    """And the trace is written first."""
    prof = profile(tmp_path, **QUICK)

    def train() -> None:
        with prof:
            for _ in range(6):
                prof.step()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        train()
    assert len(prof.paths) == 1


@pytest.mark.parametrize("start_at", [0, 3])
def test_a_capture_that_can_t_begin_lets_go_of_everything(
    start_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on, and another session can be opened in it."""

    def fail(course: CaptureRun) -> None:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(CaptureRun, "start", fail)
        failed = profile(tmp_path, start_at=start_at, **QUICK).__enter__()
        for _ in range(5):
            failed.step()
    assert (failed.done, failed.failed, Session.running) == (True, "RuntimeError: no", None)
    assert run(profile(tmp_path, **QUICK), 20).complete


def test_the_end_of_the_last_capture_is_reported_however_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Complete, or failed where it should have begun; once, when nothing is held any more."""
    seen: list[Session | None] = []

    def captured(folder: str) -> None:
        session = profile(tmp_path / folder, start_at=3, **QUICK)
        session.finished = lambda: seen.append(Session.running)
        run(session, 20)

    def fail(course: CaptureRun) -> None:
        raise RuntimeError("no")

    captured("complete")
    assert seen == [None]
    monkeypatch.setattr(CaptureRun, "start", fail)
    captured("failed")
    assert seen == [None, None]


def test_steps_after_the_end_do_nothing(tmp_path: Path) -> None:
    """They aren't even counted."""
    prof = run(profile(tmp_path, **QUICK), 50)
    assert prof.steps == 7


def test_a_second_capture_at_the_same_time_is_refused(tmp_path: Path) -> None:
    """Torch's profiler allows one; the first goes on."""
    with profile(tmp_path, **QUICK) as first:
        with pytest.raises(UsageError, match="already running"):
            profile(tmp_path, **QUICK).__enter__()
        for _ in range(7):
            first.step()
    assert first.complete


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_step(tmp_path: Path) -> None:
    """As a DataLoader's worker, which inherits the session."""
    with profile(tmp_path, **QUICK) as prof:
        child = os.fork()
        if child == 0:
            prof.step()
            os._exit(prof.steps)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_cpu_is_reported_in_a_plain_sentence(tmp_path: Path) -> None:
    """By `warnings.warn`, if nobody asked for it otherwise."""
    with pytest.warns(UserWarning, match="a CPU has no host-device syncs"):
        run(profile(tmp_path, **{**QUICK, "notify": None}), 1)
    messages: list[str] = []
    run(profile(tmp_path, **{**QUICK, "notify": messages.append}), 1)
    assert messages == [NO_DEVICE]


def test_a_torch_without_callbacks_is_reported_in_a_plain_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is captured; with callbacks there is nothing to say."""
    monkeypatch.setattr(device, "vendor", lambda: "cuda")
    messages: list[str] = []
    run(profile(tmp_path, **{**QUICK, "notify": messages.append}), 1)
    assert messages == []
    monkeypatch.setattr(sync_lines, "switch", lambda: None)
    run(profile(tmp_path, **{**QUICK, "notify": messages.append}), 1)
    assert messages == [NO_CALLBACKS]


def test_lines_are_recorded_in_the_active_steps_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With callbacks that a test calls where a device would: in each step, and in the profiler's own closing wait."""
    callback = sync_lines.on_sync("stream")
    monkeypatch.setattr(sync_lines, "exact", lambda: True)
    monkeypatch.setattr(device, "backend", lambda: torch.cuda)
    with profile(tmp_path, **QUICK) as prof:
        for _ in range(10):
            callback(1)
            prof.step()
    (path,) = prof.paths
    own = read(path)["syncscan"]
    steps = sorted(
        (e["ts"], e["ts"] + e["dur"]) for e in read(path)["traceEvents"] if e["name"].startswith("ProfilerStep")
    )
    at = [(row[0] - read(path)["baseTimeNanoseconds"]) / 1000 for row in own["lines"]["syncs"]]
    assert [begin < t < end for (begin, end), t in zip(steps, at, strict=True)] == [True, True]
