"""Deadly signals in a capture: the program's own handler has the last word, once, whenever the signal came."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscan.capture import trace_file
from syncscan.capture.capture_run import CaptureRun
from syncscan.capture.session import Session, profile
from syncscan.capture.signals import TerminationHandler

torch = pytest.importorskip("torch")

PLAN: dict[str, Any] = {"settle": 0, "calibrate": 0, "wait": 0, "warmup": 1, "active": 1, "notify": print}


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """The SIGTERMs that the program's own handler was called with."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)
    Session.running = None


def wakeup() -> int:
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    return before


def terminated(action: Callable[..., Any]) -> Callable[..., Any]:
    """The action, with a SIGTERM in its middle."""

    def act(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return action(*arguments)

    return act


def test_a_signal_that_comes_while_a_trace_is_written_is_handled_once(
    heard: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler is called when the trace is there, and the capture then goes on to its end without calling it."""
    monkeypatch.setattr(trace_file, "copy_with", terminated(trace_file.copy_with))
    with profile(tmp_path, "t", repeat=2, **PLAN) as session:
        for _ in range(2):
            session.step()
        assert (heard, len(session.paths)) == ([signal.SIGTERM], 1)
        for _ in range(8):
            session.step()
    assert heard == [signal.SIGTERM]


def test_a_signal_that_comes_while_a_capture_begins_is_handled_when_it_has_begun(
    heard: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a step later: the first step may be one that never ends."""
    monkeypatch.setattr(CaptureRun, "start", terminated(CaptureRun.start))
    with profile(tmp_path, "t", **PLAN):
        assert heard == [signal.SIGTERM]


def test_a_signal_that_comes_while_a_capture_fails_is_handled(
    heard: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the capture is over then."""

    def failing(course: CaptureRun) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(CaptureRun, "start", terminated(failing))
    with profile(tmp_path, "t", **PLAN) as session:
        assert (heard, session.failed) == ([signal.SIGTERM], "RuntimeError: no")
    assert heard == [signal.SIGTERM]


def test_another_thread_leaves_the_signals_to_the_main_one() -> None:
    """Only the main thread can take the pipe from Python, which would go on to write into a closed one."""
    before = wakeup()
    ending = TerminationHandler(lambda *_: True)
    pipe = wakeup()
    thread = threading.Thread(target=ending.leave)
    thread.start()
    thread.join()
    assert wakeup() == pipe
    assert os.fstat(pipe)
    ending.leave()
    assert wakeup() == before
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(pipe)
