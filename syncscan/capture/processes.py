"""Run a command unchanged, and collect what was captured in each of its processes.

`torchrun`, `accelerate launch`, `deepspeed`, a shell script, `mp.spawn`: whoever starts a process of Python's gives it
the environment, and with it a folder on Python's path whose `sitecustomize` has syncscan begin once torch is imported
(`startup`). A process that steps an optimizer captures itself, and says so in a folder that all of them know.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import msgspec

from syncscan.capture.plan import Demand, Plan
from syncscan.capture.script import ScriptRun
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
    stacks: bool
    shapes: bool
    keep_running: bool

    @staticmethod
    def read(text: str) -> WantedCaptures:
        return msgspec.json.decode(text, type=WantedCaptures)

    def variables(self) -> dict[str, str]:
        """Return the environment's variables with which a process of Python's captures itself."""
        return with_startup("syncscan.capture.captured_process", VARIABLE, msgspec.json.encode(self).decode())

    def session(self, name: str, say: Callable[[str], None]) -> Session:
        return Session(Path(self.out), name, self.plan, self.demand, stacks=self.stacks, shapes=self.shapes, notify=say)


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
