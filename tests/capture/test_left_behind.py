"""A capture leaves the process as it found it, however it ends: torch, Python, signals, the environment."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscan.capture import cupti, device, sync_lines, trace_file
from syncscan.capture.session import Session, profile

torch = pytest.importorskip("torch")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PLAN: dict[str, Any] = {"settle": 1, "calibrate": 2, "wait": 1, "warmup": 2, "active": 2}


def process() -> dict[str, Any]:
    """Everything that a capture touches while it runs."""
    profiler = importlib.import_module("torch.autograd.profiler")
    places = [*sync_lines.CALLS]
    switch = sync_lines.switch()
    return {
        "callbacks": (switch.value if switch else None, sync_lines.registries("cuda")),
        "entry points": [_value(path, name) for path, name in places],
        "scopes": (profiler.record_function.__enter__, profiler.record_function.__exit__),
        "profiler": (profiler.profile._prepare_trace, torch.autograd._profiler_enabled()),
        "steps": dict(profiler.KinetoStepTracker._step_dict),
        "filters": (list(warnings.filters), warnings.showwarning),
        "environment": dict(os.environ),
        "finders": list(sys.meta_path),
        "signals": {number: signal.getsignal(number) for number in (1, 2, 10, 12, 15)},
        "threads": {thread.name for thread in threading.enumerate()},
        "wakeup": _wakeup(),
        "recording": sync_lines._state.recording,
        "collections": list(gc.callbacks),
        "session": (Session.running, Session.opened),
    }


def _value(path: str, name: str) -> Any:
    owner = torch
    for part in path.split(".")[1:]:
        owner = getattr(owner, part, None)
    return getattr(owner, name, None), name in vars(owner) if owner is not None else None


def _wakeup() -> int:
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    return before


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Torch's own callbacks are switched on for real, though on a CPU nobody calls them.

    Any first profile of a process imports torch's compiler, which sets a variable of its own: that has happened.
    """
    if not torch.cuda.is_available():
        monkeypatch.setattr(device, "vendor", lambda: "cuda")
    with torch.profiler.profile():
        torch.ones(1, device=DEVICE).add(1)
    yield
    Session.running = None
    importlib.import_module("torch.autograd.profiler").KinetoStepTracker.erase_step_count("ProfilerStep")


def told(into: list[str]) -> dict[str, Any]:
    return {**PLAN, "notify": into.append}


def capture(folder: Path, steps: int, step: Callable[[int], None] = lambda k: None) -> Session:
    with profile(folder, "t", **told([])) as session:
        for k in range(steps):
            torch.ones(2, device=DEVICE).add(1)
            step(k)
            session.step()
    return session


def test_callbacks_are_on_in_recorded_steps_alone(tmp_path: Path) -> None:
    """Not even in those that warm the profiler up."""
    switch = sync_lines.switch()
    assert switch is not None
    seen: list[bool] = []
    capture(tmp_path, 12, lambda k: seen.append(bool(switch.value)))
    assert seen == [False] * 6 + [True] * 2 + [False] * 4


@pytest.mark.parametrize("steps", [0, 1, 3, 4, 5, 6, 7, 8, 20])
def test_after_a_capture_that_ended_in_any_step(steps: int, tmp_path: Path) -> None:
    """Settling, timing, waiting, warming up, recording, done: and the same once more."""
    before = process()
    for _ in range(2):
        capture(tmp_path, steps)
        assert process() == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("at", [1, 5, 7])
def test_after_an_exception_in_a_step(at: int, error: type[BaseException], tmp_path: Path) -> None:
    """It comes through as it is."""

    def fail(k: int) -> None:
        if k == at:
            raise error

    before = process()
    with pytest.raises(error):
        capture(tmp_path, 20, fail)
    assert process() == before


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_does_not_reach_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is reported, the capture ends, and the steps continue."""
    messages: list[str] = []
    before = process()
    monkeypatch.setattr(trace_file, "copy_with", full)
    with profile(tmp_path, "t", **told(messages)) as session:
        for _ in range(20):
            session.step()
    assert (session.steps, session.done, session.paths) == (8, True, [])
    assert "No space left on device" in str(session.failed)
    assert messages[-1].startswith("The capture failed and has ended; the program continues: OSError")
    assert list(tmp_path.iterdir()) == []
    assert process() == before


def test_a_folder_that_has_gone_is_made_again(tmp_path: Path) -> None:
    """A clean-up of old runs takes it away while the job runs."""
    folder = tmp_path / "traces"
    session = capture(folder, 12, lambda k: folder.rmdir() if k == 2 else None)
    assert [path.parent for path in session.paths] == [folder]


def test_a_folder_that_has_become_a_file_does_not_reach_the_loop(tmp_path: Path) -> None:
    """Nothing can be written there."""
    folder = tmp_path / "traces"

    def replace(k: int) -> None:
        if k == 2:
            folder.rmdir()
            folder.write_text("")

    session = capture(folder, 12, replace)
    assert session.failed
    assert session.paths == []


@pytest.mark.parametrize("method", ["__enter__", "step", "__exit__", "export_chrome_trace"])
def test_a_profiler_that_fails_does_not_reach_the_loop(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it does."""
    kind = importlib.import_module("torch.profiler").profile
    before = process()
    with monkeypatch.context() as patch:
        original = getattr(kind, method)

        def failing(*arguments: Any) -> Any:
            if method == "__exit__":
                original(*arguments)
            raise RuntimeError("CUPTI_ERROR_UNKNOWN")

        patch.setattr(kind, method, failing)
        session = capture(tmp_path, 20)
    assert "CUPTI_ERROR_UNKNOWN" in str(session.failed)
    after = process()
    assert {k: v for k, v in after.items() if k != "steps"} == {k: v for k, v in before.items() if k != "steps"}


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (sync_lines, "end"),
        (device, "clocks"),
        (cupti.Attachment, "before_stop"),
        (cupti.Attachment, "release"),
        (importlib.import_module("torch.profiler").profile, "start_trace"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
@pytest.mark.parametrize("last", [4, 6])
def test_half_a_stop_still_takes_the_rest_off(
    last: int, owner: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of it fails, in a step that warms up and in one that is recorded.

    Letting go of CUPTI fails at its end: where it doesn't even begin, its variable stands until the next capture.
    """
    before = process()
    original = getattr(owner, name)
    failed: list[bool] = []

    def failing(*arguments: Any) -> Any:
        if failed == [False]:
            failed[0] = True
            if name == "release":
                original(*arguments)
            raise RuntimeError("no")
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing)
        capture(tmp_path, last + 1, lambda k: failed.append(False) if k == last else None)
    after = process()
    assert failed == [last == 4 or name != "start_trace"]
    assert {k: v for k, v in after.items() if k != "steps"} == {k: v for k, v in before.items() if k != "steps"}


def test_a_failed_write_that_ctrl_c_interrupts_is_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And everything is off."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    before = process()
    monkeypatch.setattr(trace_file, "copy_with", interrupted)
    with pytest.raises(KeyboardInterrupt):
        capture(tmp_path, 20)
    assert process() == before


def test_words_that_can_t_be_reported_do_not_reach_the_loop(tmp_path: Path) -> None:
    """A closed stderr."""

    def closed(sentence: str) -> None:
        raise ValueError("I/O operation on closed file")

    with profile(tmp_path / "a", "t", **{**PLAN, "notify": closed}) as session:
        for _ in range(20):
            session.step()
    assert session.complete


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_as_before_the_capture(tmp_path: Path) -> None:
    """A DataLoader's worker that is started in a recorded step: no callbacks, no patches, no handlers."""
    outside = process()
    matches: list[int] = []

    def fork(k: int) -> None:
        if k != 6:
            return
        child = os.fork()
        if child == 0:
            inside = process()
            same = [
                key
                for key in (
                    "callbacks",
                    "entry points",
                    "filters",
                    "signals",
                    "wakeup",
                    "recording",
                    "collections",
                    "session",
                )
                if inside[key] != outside[key]
            ]
            os.write(2, f"differs: {same}\n".encode()) if same else None
            os._exit(len(same))
        matches.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    session = capture(tmp_path, 12, fork)
    assert matches == [0]
    assert session.complete


def test_a_program_s_own_profiler_is_waited_for(tmp_path: Path) -> None:
    """Torch would let both run and throw the events of both away."""
    own = torch.profiler.profile()

    def step(k: int) -> None:
        if k == 2:
            own.start()
        torch.ones(3).add(1)
        if k == 7:
            own.stop()

    messages: list[str] = []
    with profile(tmp_path, "t", **told(messages)) as session:
        for k in range(20):
            step(k)
            session.step()
    assert sum(event.name == "aten::add" for event in own.events()) == 6
    assert session.complete
    assert session.steps == 12
    assert [sentence for sentence in messages if "waits for it" in sentence]


def test_a_program_s_own_profiler_takes_the_place_of_a_recording(tmp_path: Path) -> None:
    """It sees all that it asked for, and what was recorded until then is kept."""
    own = torch.profiler.profile()

    def step(k: int) -> None:
        if k == 7:
            own.start()
        torch.ones(3).add(1)
        if k == 9:
            own.stop()

    session = capture(tmp_path, 12, step)
    assert sum(event.name == "aten::add" for event in own.events()) == 5
    assert len(session.paths) == 1
    assert not session.complete
