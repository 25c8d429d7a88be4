"""A thread is bound, and its process isn't."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan.scratch import landlock
from syncscan.testing.bound_thread import BoundThread

pytestmark = pytest.mark.skipif(not landlock.holds(), reason="no Landlock here")


@pytest.fixture
def bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BoundThread]:
    """A thread that can write into `results` only, in a folder with a checkpoint besides."""
    (tmp_path / "last.pt").write_text("checkpoint")
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    thread = BoundThread([tmp_path / "results"])
    yield thread
    thread.end()


def test_what_the_thread_starts_is_bound_and_others_are_not(bound: BoundThread) -> None:
    """Threads and programs inherit it; the thread that waits is free."""
    assert bound.call(lambda: subprocess.run("echo 0.1 > results/new", shell=True).returncode) == 0
    assert bound.call(lambda: subprocess.run("echo x > last.pt", shell=True, stderr=subprocess.PIPE).returncode) != 0
    errors: list[BaseException] = []

    def write() -> None:
        try:
            Path("last.pt").write_text("x")
        except OSError as error:
            errors.append(error)

    def in_a_thread() -> None:
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()

    bound.call(in_a_thread)
    assert [type(error) for error in errors] == [PermissionError]
    Path("last.pt").write_text("free")


def test_errors_come_from_where_they_happen(bound: BoundThread) -> None:
    """With their traceback; the next call is not touched by it."""

    def fails() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        bound.call(fails)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fails"
    assert bound.call(lambda: 1) == 1


def test_an_interrupt_reaches_the_function_that_runs(bound: BoundThread) -> None:
    """And is shown at its line."""

    def waits() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt) as caught:
        bound.call(waits)
    assert "waits" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    with pytest.raises(PermissionError):
        bound.call(lambda: Path("last.pt").write_text("x"))


def test_an_interrupt_that_wakes_nobody_is_noticed(bound: BoundThread) -> None:
    """The system may give a signal to a thread that runs, or to a waiting one just before it blocks."""

    def waits() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            time.sleep(0.001)

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with pytest.raises(KeyboardInterrupt):
            bound.call(waits)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
