"""Run a command unchanged, and capture each of its processes that steps an optimizer; end them together.

`torchrun`, `accelerate launch`, `deepspeed`, a shell script, `mp.spawn`: whoever starts a process of Python's gives it
the environment, and with it a folder on Python's path whose `sitecustomize` has syncscan begin once torch is imported
(`startup`). A process that steps an optimizer captures itself, and says so in a folder that all of them know.

Ranks step together: one that ended alone would leave the others waiting for ever. So each says when its capture is
complete, and goes on; when all have, the first says at which step all end. A command may start several programs, one
after the other or at a time: each has a group of its own, and what is older than a process isn't meant for it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from syncscan.capture import torch_hooks
from syncscan.capture.main_script import Exit
from syncscan.capture.plan import Demand, Plan
from syncscan.capture.program_name import default_name, group_of_ranks, on_one_machine, ranks
from syncscan.capture.script_capture import Runner, ScriptRun
from syncscan.capture.session import Session

VARIABLE = "SYNCSCAN_CHILD"
"""Environment variable with the captures to make, as JSON."""
STARTUP = Path(__file__).parent / "startup"
BEGINS = "SYNCSCAN_BEGINS"
"""Environment variable with the modules that `startup` has begin, by commas."""


@dataclass(frozen=True, slots=True)
class WantedCaptures:
    """Captures that the processes of a command are to make.

    `seen` is the folder in which they say what they did, `out` that of the traces; `name` what a trace's name begins
    with, empty for the script's.
    """

    seen: str
    out: str
    name: str
    plan: Plan
    demand: Demand
    keep_running: bool

    @staticmethod
    def read(text: str) -> WantedCaptures:
        return msgspec.json.decode(text, type=WantedCaptures)

    def variables(self) -> dict[str, str]:
        """Return the environment's variables with which a process of Python's captures itself."""
        return with_startup(__name__, VARIABLE, msgspec.json.encode(self).decode())

    def session(self, name: str, say: Callable[[str], None]) -> Session:
        return Session(Path(self.out), name, self.plan, self.demand, say)


def with_startup(module: str, variable: str, order: str) -> dict[str, str]:
    """Return variables by which a process of Python's finds `startup`, and calls a module's `begin` with an order.

    The order is for the module, which finds it in its variable.
    """
    before = {name: os.environ.get(name, "") for name in (BEGINS, "PYTHONPATH")}
    path = os.pathsep.join(filter(None, [str(STARTUP), before["PYTHONPATH"]]))
    return {variable: order, BEGINS: ",".join(filter(None, [before[BEGINS], module])), "PYTHONPATH": path}


@contextlib.contextmanager
def inheriting(given: Mapping[str, str]) -> Iterator[None]:
    """Give processes that this one starts meanwhile these variables, which the program here doesn't see.

    Python's `os.environ` is a copy: what is put past it is there for who is started with no other environment.
    """
    for name, value in given.items():
        os.putenv(name, value)
    try:
        yield
    finally:
        for name in given:
            if name in os.environ:
                os.putenv(name, os.environ[name])
            else:
                os.unsetenv(name)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yield a folder in which processes say what they captured, for as long as they run."""
    path = Path(tempfile.mkdtemp(prefix="syncscan-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def run_with(words: Sequence[str], given: Mapping[str, str]) -> int:
    """Run a command to its end with further variables of the environment, and return its exit code."""
    process = subprocess.Popen(list(words), env={**os.environ, **given})

    def hand_on(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal has interrupted it too
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def report(run: ScriptRun, file: Path) -> None:
    """Write what this process captured into a file, whole or not at all."""
    draft = file.with_suffix(".draft")
    draft.write_bytes(msgspec.json.encode(run, enc_hook=str))
    draft.replace(file)


def runs(seen: Path) -> list[ScriptRun]:
    """Return what the processes captured, by rank."""
    captured: list[ScriptRun] = []
    for file in seen.glob("*.json"):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            text = file.read_bytes()
            captured.append(msgspec.json.decode(text, type=ScriptRun, dec_hook=lambda kind, value: kind(value)))
    return sorted(captured, key=lambda run: (run.rank, run.pid))


LOOK_S = 0.1
"""How often the first rank looks whether all captures are complete."""
AHEAD, AHEAD_S = 3, 0.5
"""Steps, and seconds, between announcing the end and ending: all ranks must have read it by then."""


class ChildRunner(Runner):
    """Captures this process if it steps, and ends it when all ranks have been captured.

    A process that was `forked` may be a loader's worker as well as a rank, so only an optimizer's steps count.
    """

    def __init__(self, wanted: WantedCaptures, *, forked: bool = False) -> None:
        self._wanted = wanted
        self._seen = Path(wanted.seen)
        self._reported = False
        self._stop_at: int | None = None
        self._ended_at: int | None = None
        """The step at whose end the program was ended; it may have caught that, and gone on."""
        self._looked = 0.0
        self._ranks: tuple[int, int] | None = None
        self._began = time.time()
        super().__init__(self._open_session, wanted.keep_running, self._tell, main=False, loops=not forked)

    def end(self) -> None:
        """Finish the capture as far as it got, as the process ends, and say so."""
        self.close()
        if self._own is not None and not self._reported:
            self._report()
        if self._ended_at == self._steps:
            _leave()

    def _open_session(self) -> Session:
        self._ranks = ranks()
        session = self._wanted.session(default_name(self._wanted.name), self._tell)
        session.wrote = lambda path: self._tell(f"wrote {path}")
        return session

    def _tell(self, sentence: str) -> None:
        if (self._ranks or ranks())[0] == 0:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(f"syncscan: {sentence}\n")

    def _finish(self) -> None:
        if not self._reported:
            self._report()
        if self._keep_running or not on_one_machine() or threading.current_thread() is not threading.main_thread():
            return
        if self._stop_at is None:
            self._stop_at = self._agreed()
        elif self._steps >= self._stop_at:
            self._stop_at = sys.maxsize  # a program that catches it goes on
            self._ended_at = self._steps
            if "ipykernel" in sys.modules:
                self._tell("The capture is complete and ends the notebook cell; this causes the error below.")
            raise SystemExit(0)

    def _agreed(self) -> int | None:
        """Return the step at whose end all ranks end; None if that isn't decided yet."""
        rank, world = self._ranks or ranks()
        group = group_of_ranks()
        file = self._seen / f"{group}.stop"
        if rank:
            with contextlib.suppress(OSError, ValueError):
                return int(file.read_text()) if file.stat().st_mtime >= self._began else None
            return None
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return None
        self._looked = now
        if world > 1 and self._complete(group) < world:
            return None
        step_s = (self._own.step_us or 0.0) / 1e6 if self._own else 0.0
        end = self._steps + (AHEAD + int(AHEAD_S / step_s) if step_s and world > 1 else 1)
        draft = file.with_suffix(".draft")
        draft.write_text(str(end))
        draft.replace(file)
        return end

    def _complete(self, group: str) -> int:
        """Return how many ranks of a group have reported completion since this one began."""
        return sum(report.stat().st_mtime >= self._began for report in self._seen.glob(f"{group}.*.json"))

    def _report(self) -> None:
        self._reported = True
        rank, world = self._ranks or ranks()
        run = self.result(Exit(0))
        stopped = not self._keep_running and run.complete and on_one_machine()
        with contextlib.suppress(OSError):
            file = self._seen / f"{group_of_ranks()}.{os.getpid()}.json"
            report(replace(run, pid=os.getpid(), rank=rank, world=world, stopped=stopped), file)


def begin() -> None:
    """Capture this process as its environment says, which has just imported torch."""
    wanted = WantedCaptures.read(os.environ[VARIABLE])
    follow_forks(wanted)
    atexit.register(ChildRunner(wanted).end)


def follow_forks(wanted: WantedCaptures) -> Callable[[], None]:
    """Have each child that this process forks from now on capture itself, if it steps an optimizer."""
    return torch_hooks.in_child(lambda: _follow(wanted))


_forked: list[ChildRunner] = []
"""The runner of this process, if it was forked."""


def _follow(wanted: WantedCaptures) -> None:
    """Set up the capture of a process that was just forked, and of those that it forks itself."""
    follow_forks(wanted)
    try:
        _forked[:] = [ChildRunner(wanted, forked=True)]
    except Exception as error:
        sys.stderr.write(f"syncscan: this process isn't captured ({type(error).__name__}: {error}).\n")
        return
    atexit.register(_end_forked)
    multiprocessing: Any = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None:  # its processes end without exit handlers, and forget what was registered before
        multiprocessing.register_after_fork(
            _forked[0], lambda runner: multiprocessing.Finalize(None, runner.end, exitpriority=0)
        )


def _end_forked() -> None:
    for runner in _forked:
        runner.end()


def _leave() -> None:
    """End the process here, behind all exit handlers of the program, if a process group of torch's is left.

    The threads of a gloo group that wasn't destroyed can abort the process while the interpreter is torn down.
    """
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)
