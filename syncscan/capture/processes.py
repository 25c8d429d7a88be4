"""Run a command unchanged, and collect what was captured in each of its processes.

`torchrun`, `accelerate launch`, `deepspeed`, a shell script, `mp.spawn`: whoever starts a process of Python's gives it
the environment, and with it a folder on Python's path whose `sitecustomize` looks on (`startup`, `child`). A process
that steps an optimizer captures itself, and says so in a folder that all of them know.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from syncscan.capture.look_on import VARIABLE
from syncscan.capture.plan import Demand, Plan

STARTUP = Path(__file__).parent / "startup"


@dataclass(frozen=True, slots=True)
class WantedCaptures:
    """Captures that the processes of a command are to make.

    `seen` is the folder in which they say what they did, `out` that of the traces; `name` what a trace's name begins
    with, empty for the script's.
    """

    seen: str
    out: str
    name: str
    plan: dict[str, Any]
    demand: dict[str, Any]
    stacks: bool
    shapes: bool
    keep_running: bool

    @staticmethod
    def of(
        seen: Path,
        out: Path,
        name: str | None,
        plan: Plan,
        demand: Demand,
        *,
        stacks: bool,
        shapes: bool,
        keep_running: bool,
    ) -> WantedCaptures:
        times = {"start_at": demand.start_at, "every": demand.every, "on_signal": demand.on_signal}
        return WantedCaptures(str(seen), str(out), name or "", asdict(plan), times, stacks, shapes, keep_running)

    @staticmethod
    def read(text: str) -> WantedCaptures:
        return WantedCaptures(**json.loads(text))


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """The captures of one process: its rank if it has one, its traces, the steps it saw, and what marked them."""

    pid: int
    rank: int
    world: int
    paths: tuple[Path, ...]
    steps: int
    marked_by: str
    complete: bool
    failed: str | None
    stopped: bool


def variables(wanted: WantedCaptures) -> dict[str, str]:
    """Return the environment's variables with which a process of Python's captures itself."""
    return with_startup({VARIABLE: json.dumps(asdict(wanted))})


def with_startup(given: Mapping[str, str]) -> dict[str, str]:
    """Return variables with the one by which a process of Python's finds `startup`, which looks for them."""
    before = os.environ.get("PYTHONPATH", "")
    return {**given, "PYTHONPATH": os.pathsep.join([str(STARTUP), *([before] if before else [])])}


def inherited(wanted: WantedCaptures) -> contextlib.AbstractContextManager[None]:
    """Have processes that this one starts meanwhile capture themselves; the program here doesn't see the variables."""
    return inheriting(variables(wanted))


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


def run_command(words: Sequence[str], wanted: WantedCaptures) -> int:
    """Run a command to its end, and return its exit code; a signal that comes meanwhile is its own."""
    return run_with(words, variables(wanted))


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


def runs(seen: Path) -> list[ProcessRun]:
    """Return what the processes captured, by rank."""
    captured = []
    for file in seen.glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            row = json.loads(file.read_text(encoding="utf-8"))
            captured.append(ProcessRun(**{**row, "paths": tuple(map(Path, row["paths"]))}))
    return sorted(captured, key=lambda run: (run.rank, run.pid))
