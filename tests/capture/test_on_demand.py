"""A job that runs at full speed until somebody asks for a capture, from outside or from its own code."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from syncscan.capture import signals
from syncscan.capture.session import Session, profile
from tests.until import until

torch = pytest.importorskip("torch")

QUICK: dict[str, Any] = {"settle": 0, "calibrate": 2, "wait": 0, "warmup": 1, "active": 2}
LENGTH = 5
ROOT = Path(__file__).parents[2]

LOOP = """
import os, signal, sys, time, torch
opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
scope = torch.autograd.profiler.record_function
print("pid", os.getpid(), flush=True)
for i in range(int(sys.argv[1])):
    time.sleep(0.01)
    opt.step()
    print("step", i, flush=True)
print("end", flush=True)
"""


def first_steps(session: Session) -> list[int]:
    return [json.loads(gzip.decompress(path.read_bytes()))["syncscan"]["first_step"] for path in session.paths]


def looped(session: Session, steps: int, at: Callable[[int], None] = lambda k: None) -> Session:
    with session:
        for k in range(steps):
            at(k)
            session.step()
    return session


def test_a_capture_begins_at_a_step(tmp_path: Path) -> None:
    """Its calibration begins there, so the first recorded step comes three later."""
    session = looped(profile(tmp_path, "t", start_at=20, notify=print, **QUICK), 50)
    assert (first_steps(session), session.done, session.complete) == ([23], True, True)


def test_captures_begin_every_so_many_steps(tmp_path: Path) -> None:
    """Each a file; one that hasn't come to its recorded steps when the loop ends leaves none."""
    session = looped(profile(tmp_path, "t", every=20, notify=print, **QUICK), 62)
    assert (first_steps(session), session.done, session.captures) == ([3, 23, 43], True, 3)


def test_code_can_ask_for_captures(tmp_path: Path) -> None:
    """Nothing is captured before; two at once are two, one after the other."""
    session = profile(tmp_path, "t", on_trigger=True, notify=print, **QUICK)
    looped(session, 60, lambda k: [session.trigger() for _ in range({10: 1, 40: 2}.get(k, 0))] and None)
    assert first_steps(session) == [11 + 3, 41 + 3, 41 + LENGTH + 1 + 3]


def test_a_whole_capture_after_one_that_was_cut_is_complete(tmp_path: Path) -> None:
    """Only the last trace counts: the one before gave way to a profiler of the program's own."""
    session = profile(tmp_path, "t", on_trigger=True, notify=print, **QUICK)

    def at(k: int) -> None:
        if k in (5, 30):
            session.trigger()
        if k == 9:  # the first recorded step
            with torch.profiler.profile():
                assert (len(session.paths), session.complete) == (1, False)

    looped(session, 60, at)
    assert (len(session.paths), session.captures, session.complete) == (2, 1, True)


def test_code_can_ask_for_another_when_the_capture_is_over(tmp_path: Path) -> None:
    """As long as the session is open."""
    session = profile(tmp_path, "t", notify=print, **QUICK)
    looped(session, 60, lambda k: session.trigger() if k == 30 else None)
    assert (len(session.paths), session.done, Session.running) == (2, True, None)


def test_another_thread_can_ask(tmp_path: Path) -> None:
    """It only counts; the loop's own thread captures."""
    session = profile(tmp_path, "t", on_trigger=True, notify=print, **QUICK)

    def ask(k: int) -> None:
        if k == 5:
            thread = threading.Thread(target=session.trigger)
            thread.start()
            thread.join()

    assert first_steps(looped(session, 30, ask)) == [9]


def test_a_signal_asks_and_the_program_s_own_handler_is_called_too(tmp_path: Path) -> None:
    """Whether it was set before the session or in it; afterwards it has its place back."""
    seen: list[str] = []
    before = signal.signal(signal.SIGUSR2, lambda *_: seen.append("first"))
    try:
        session = profile(tmp_path, "t", on_signal="USR2", notify=print, **QUICK)

        def second(*_: Any) -> None:
            seen.append("second")

        def at(k: int) -> None:
            if k == 20:
                signal.signal(signal.SIGUSR2, second)
            if k in (10, 12, 30):  # the second comes in the middle of a capture
                os.kill(os.getpid(), signal.SIGUSR2)

        looped(session, 60, at)
        assert seen == ["first", "first", "second"]
        assert first_steps(session) == [11 + 3, 16 + 1 + 3, 31 + 3]
        assert signal.getsignal(signal.SIGUSR2) is second
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_waiting_costs_a_count(tmp_path: Path) -> None:
    """While no capture is under way a step calls two functions, and of torch's nothing is called or changed."""
    scope = torch.autograd.profiler.record_function
    handlers = [signal.getsignal(number) for number in signals.ENDING]
    before = (scope.__enter__, scope.__exit__, torch.autograd._profiler_enabled(), handlers)
    called: list[str] = []

    def note(frame: FrameType, event: str, given: Any) -> None:
        if event in ("call", "c_call"):
            called.append(frame.f_code.co_name if event == "call" else given.__name__)

    session = profile(tmp_path, "t", on_trigger=True, notify=print, **QUICK)
    with session:
        sys.setprofile(note)
        try:
            for _ in range(1000):
                session.step()
        finally:
            sys.setprofile(None)
        handlers = [signal.getsignal(number) for number in signals.ENDING]
        assert (scope.__enter__, scope.__exit__, torch.autograd._profiler_enabled(), handlers) == before
    assert called == ["step", "getpid", "due"] * 1000 + ["setprofile"]
    assert session.steps == 1000


def ticks_of(process: str) -> int:
    """Return how long a process has computed, in hundredths of a second."""
    return sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]))


class Job:
    """`syncscan profile` on a script, to be sent signals."""

    def __init__(self, folder: Path, code: str, *options: str) -> None:
        (folder / "job.py").write_text(textwrap.dedent(code))
        short = ["--calibrate", "2", "--wait", "0", "--warmup", "1", "--active", "2"]
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "syncscan", "profile", *short, *options, "job.py", "100000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def reach(self, words: str) -> str:
        """Read what it prints up to a line with these words, and return that."""
        assert self.process.stdout is not None
        while words not in (line := self.process.stdout.readline()):
            assert line, self.process.communicate(timeout=300)[1]
        return line

    def traces(self, count: int) -> None:
        until(lambda: len(list(self.folder.glob("syncscan-out/job.*"))) >= count)
        assert self.process.poll() is None

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=300)
        return self.process.returncode, err


@pytest.mark.usefixtures("warm")
def test_a_running_job_is_captured_on_signal(tmp_path: Path) -> None:
    """As often as one likes; SIGTERM between captures ends it as it would any program."""
    job = Job(tmp_path, LOOP, "--on-signal", "USR2")
    job.reach("step 20")
    assert not list(tmp_path.glob("syncscan-out/*"))
    for count in (1, 2, 3):
        job.send(signal.SIGUSR2)
        job.traces(count)
    job.send(signal.SIGTERM)
    code, err = job.end()
    assert code == -signal.SIGTERM
    assert err.count("syncscan: wrote syncscan-out/job.") == 3


NEVER_ENDS = """
import os, signal, sys, time, torch
opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
{before}
for i in range(8):
    opt.step()
print("now", os.getpid(), flush=True)
{forever}
"""


@pytest.mark.usefixtures("warm")
def test_a_recorded_step_that_never_ends_is_written_on_sigterm(tmp_path: Path) -> None:
    """A scheduler's signal: what there is is kept, which is said, and the process dies of the signal."""
    job = Job(tmp_path, NEVER_ENDS.format(before="", forever="while True: time.sleep(1)"), "--active", "9")
    job.reach("now")
    job.send(signal.SIGTERM)
    code, err = job.end()
    (path,) = (tmp_path / "syncscan-out").iterdir()
    assert code == -signal.SIGTERM
    assert "syncscan: SIGTERM in step 8 of 15 of a capture: kept" in err
    assert path.name in err
    assert json.loads(gzip.decompress(path.read_bytes()))["syncscan"]["unfinished_step"] is not None


@pytest.mark.usefixtures("warm")
def test_a_program_s_own_sigterm_handler_has_the_last_word(tmp_path: Path) -> None:
    """It may save a checkpoint and go on for a while."""
    # print isn't reentrant, and the signal may come within the job's own.
    handler = "signal.signal(signal.SIGTERM, lambda *a: (os.write(1, b'checkpoint\\n'), sys.exit(5)))"
    job = Job(tmp_path, NEVER_ENDS.format(before=handler, forever="while True: time.sleep(1)"), "--active", "9")
    job.reach("now")
    job.send(signal.SIGTERM)
    job.reach("checkpoint")
    code, err = job.end()
    assert (code, len(list((tmp_path / "syncscan-out").iterdir()))) == (5, 1)
    assert "SIGTERM in step" in err


@pytest.mark.usefixtures("warm")
def test_sigterm_before_anything_is_recorded_says_so(tmp_path: Path) -> None:
    """While the steps are timed."""
    job = Job(tmp_path, NEVER_ENDS.format(before="", forever="while True: time.sleep(1)"), "--calibrate", "50")
    job.reach("now")
    job.send(signal.SIGTERM)
    code, err = job.end()
    assert code == -signal.SIGTERM
    assert "nothing was recorded yet" in err


@pytest.mark.skipif(sys.platform != "linux", reason="tells how long a process computed as Linux does")
@pytest.mark.usefixtures("warm")
def test_a_call_of_c_that_never_returns_does_not_keep_the_process_from_dying(tmp_path: Path) -> None:
    """Python hears of a signal only when the main thread is back in Python; a thread of the capture's ends it."""
    before = "from syncscan.capture import signals\nsignals.GRACE_S = 0.5\nimport hashlib"
    forever = "hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2 * 10**9)"
    job = Job(tmp_path, NEVER_ENDS.format(before=before, forever=forever), "--active", "9")
    process = job.reach("now").split()[1]
    before = ticks_of(process)
    until(lambda: ticks_of(process) > before + 20)  # in the call alone it computes for so long
    job.send(signal.SIGTERM)
    code, err = job.end()
    assert code == -signal.SIGTERM
    assert "SIGTERM came in a call that didn't return" in err


@pytest.mark.usefixtures("warm")
def test_a_worker_that_is_advised_to_end_in_a_capture_takes_nobody_with_it(tmp_path: Path) -> None:
    """A forked child shares the pipe into which Python writes signals; it must not write there."""
    before = """
from syncscan.capture import signals
signals.GRACE_S = 0.3
import multiprocessing as mp
"""
    forever = """
context = mp.get_context("fork")
ready = context.Event()
def wait():
    ready.set()
    time.sleep(60)
child = context.Process(target=wait)
child.start()
ready.wait()  # what a forked child does first is Python's
child.terminate()
child.join()
print("child", child.exitcode, flush=True)
time.sleep(1)  # more than the grace
print("alive", flush=True)
"""
    job = Job(tmp_path, NEVER_ENDS.format(before=before, forever=forever), "--active", "9")
    job.reach(f"child -{int(signal.SIGTERM)}")
    job.reach("alive")
    assert job.end()[0] == 0
