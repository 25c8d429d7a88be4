"""Run a program or a command with all that it starts, in a session of its own, and leave nothing of it behind.

It has nothing to read on stdin. Its lines are read as they come, and the last of them shown if it fails. What left its
process group still carries its mark in its environment, by which Linux finds it. A program answers orders
(`ChildProcess`); a command is stopped, resumed and read (`CommandRun`).
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncscan.scratch import Scratch

SHOWN, LONGEST = 15, 1_000
"""Last lines of a failed program's output that are shown, and characters of each."""
MOST = 4 << 20
"""Bytes of a command's output that are stored."""
POLL_S = 0.05
"""How often a process is looked after while something of it is awaited: its end doesn't always close its pipes, which
its own children may hold."""
GRACE_S = 10.0
"""Seconds that a process may take to end after SIGTERM: what it runs at exit is the user's."""
MARK = "SYNCSCAN_TRIAL"
_OURS = uuid.uuid4().hex
"""Begin of the marks of all that this process runs."""
_numbers = itertools.count()
_ENTER = """\
import sys
sys.path[:] = [{root!r}, *filter(None, sys.path)]
import json, os
from pathlib import Path
from syncscan.scratch import Scratch
kind, folders, command = json.loads(sys.argv[1])
Scratch(kind, tuple(map(Path, folders))).enter(dry=False)
os.execv("/bin/sh", ["sh", "-c", command])
"""
"""Enters a scratch view, which all that is started then shares, and becomes the command."""
_END_BEHIND = """\
import os, signal, sys, time
sys.stdin.read()
for number, seconds in ((signal.SIGTERM, 0), (signal.SIGCONT, float(sys.argv[2])), (signal.SIGKILL, 0)):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                if sys.argv[1].encode() in environment.read():
                    os.kill(int(pid), number)
        except OSError:
            pass
    time.sleep(seconds)
"""


class RunningProcess:
    """A running program. What it prints is passed to `_heard`, line by line, by threads."""

    def __init__(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], pipes: Sequence[int] = ()
    ) -> None:
        self._mark = f"{_OURS}.{next(_numbers)}."
        self._last: collections.deque[str] = collections.deque(maxlen=SHOWN)
        self._process = subprocess.Popen(
            words,
            cwd=folder,
            env={**environment, MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=pipes,
            start_new_session=True,
        )
        streams = self._process.stdout, self._process.stderr
        self._readers = [threading.Thread(target=self._read, args=(stream,), daemon=True) for stream in streams]
        for reader in self._readers:
            reader.start()

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def pids(self) -> list[int]:
        """Return its process, while it runs, and whatever else carries its mark, such as ranks of a launcher."""
        own = [self._process.pid] if self.code is None else []
        return [*own, *(pid for pid in marked(self._mark) if pid not in own)]

    def end_of_output(self) -> str:
        """Return its last lines, for a message."""
        return "\n  ".join(["The end of its output:", *self._last]) if self._last else "It printed nothing."

    def _signal(self, number: int) -> None:
        pids = self.pids()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.pid in pids:
                os.killpg(self._process.pid, number)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _kill(self, grace_s: float) -> int:
        """Let it end for so long, and end it and all that it started if it doesn't; return its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self._signal(signal.SIGKILL)
        code = self._process.wait()
        self._read_rest()
        return code

    def _read_rest(self) -> None:
        for reader in self._readers:
            reader.join(1.0)

    def _read(self, stream: Any) -> None:
        left = b""
        with contextlib.suppress(OSError, ValueError), stream:
            while piece := os.read(stream.fileno(), 1 << 16):
                *whole, left = (left + piece).replace(b"\r", b"\n").split(b"\n")
                left = left[-MOST:]
                self._add(whole, stream)
        self._add([left], stream)

    def _add(self, pieces: Sequence[bytes], stream: object) -> None:
        lines = [piece.decode("utf-8", "replace") for piece in pieces if piece.strip()]
        self._last += [line[-LONGEST:] for line in lines]
        self._heard(lines, stream is self._process.stdout)

    def _heard(self, lines: Sequence[str], on_stdout: bool) -> None:
        """Take new lines, in a reading thread."""


class ChildProcess(RunningProcess):
    """A running program that is sent orders and gives answers, both lines of JSON.

    Args:
        command: what to run; the numbers of its two pipes are added to it.
        folder: where it runs.
        environment: its environment; a mark is added.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        try:
            super().__init__([*command, str(orders), str(answers)], folder, environment, (orders, answers))
        finally:
            os.close(orders)
            os.close(answers)
        self._ended: int | None = None
        self._left = b""

    def send(self, order: Mapping[str, Any]) -> None:
        """Send an order; a process that is over doesn't mind."""
        with contextlib.suppress(OSError):
            os.write(self._orders, json.dumps(order).encode() + b"\n")

    def receive(self, deadline: float) -> dict[str, Any] | None:
        """Return the next answer; None if the process ended without one.

        Args:
            deadline: until when to wait, by `time.monotonic`.

        Raises:
            TimeoutError: there was none until then.
        """
        while b"\n" not in self._left:
            over = self.code is not None
            ready = select.select([self._answers], [], [], 0 if over else POLL_S)[0]
            piece = os.read(self._answers, 1 << 16) if ready else b""
            self._left += piece
            if not piece and (over or ready):
                return None
            if time.monotonic() > deadline:
                raise TimeoutError
        line, _, self._left = self._left.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self, grace_s: float = GRACE_S) -> int:
        """Let the process end, and end it and all that it started if it doesn't; gives its exit code."""
        if self._ended is None:
            os.close(self._orders)
            self._ended = self._kill(grace_s)
            os.close(self._answers)
        return self._ended


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A line of a shell, the folder in which it runs, and variables of its environment."""

    line: str
    name: str = ""
    folder: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=dict)


class CommandRun(RunningProcess):
    """A running command, which can be stopped for a while with all that it started.

    Args:
        command: what to run; a `scratch` view holds what it writes, None lets it write into the user's files.
        find: returns what is wanted of a line, or None; None if nothing is wanted.

    Attributes:
        matched: what `find` returned, as it comes.
        times: when each of these came, in s.
        lines: what it printed on stdout.
    """

    def __init__(self, command: ShellCommand, scratch: Scratch | None, find: Callable[[str], Any] | None) -> None:
        self._scratch, self._find = scratch, find
        self._paused, self._closed = False, False
        self.matched: list[Any] = []
        self.times: list[float] = []
        self.lines: list[str] = []
        self._size, self._news = 0, threading.Condition()
        self.began, self.seconds = time.monotonic(), 0.0
        environment = {"PYTHONUNBUFFERED": "1", **os.environ, **command.environment}
        super().__init__(_words(command.line, scratch), command.folder, environment)

    def wait(self, until: Callable[[], bool], deadline: float) -> bool:
        """Wait for a condition on what it has printed; return False if it ended without.

        Raises:
            TimeoutError: it neither held nor did the command end before the deadline, by `time.monotonic`.
        """
        while True:
            with self._news:
                if until():
                    return True
                self._news.wait(POLL_S)
            if self.code is not None:
                self._over()
                return until()
            if time.monotonic() > deadline:
                raise TimeoutError

    def pause(self) -> None:
        if not self._paused and self.code is None:  # the number of one that has ended may be another's by now
            self._paused = True
            stopped: set[int] = set()
            while not stopped.issuperset(pids := self.pids()):  # one may have started another meanwhile
                self._signal(signal.SIGSTOP)
                stopped.update(pids)

    def resume(self) -> bool:
        """Let it go on; return whether it was paused."""
        if not self._paused:
            return False
        self._signal(signal.SIGCONT)
        self._paused = False
        return True

    def end(self, grace_s: float) -> None:
        """End it and all that it started, by force if it doesn't end by itself, and remove what it wrote; only once."""
        if self._closed:
            return
        self._closed = True
        if self.code is None:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
        self._kill(grace_s)
        self._over()
        if self._scratch is not None:
            self._scratch.close()

    def _over(self) -> None:
        if not self.seconds:
            self.seconds = time.monotonic() - self.began
            self._read_rest()

    def _heard(self, lines: Sequence[str], on_stdout: bool) -> None:
        with self._news:
            for line in lines:
                self._size += len(line)
                if on_stdout and self._size <= MOST:
                    self.lines.append(line)
                if self._find is not None and (taken := self._find(line)) is not None:
                    self.times.append(time.monotonic())
                    self.matched.append(taken)
            self._news.notify_all()


def _words(line: str, scratch: Scratch | None) -> list[str]:
    if scratch is None:
        return ["/bin/sh", "-c", line]
    order = json.dumps([scratch.kind, [str(path) for path in scratch.folders], line])
    return [sys.executable, "-c", _ENTER.format(root=str(Path(__file__).parents[2])), order]


@contextlib.contextmanager
def ended_with_us() -> Iterator[None]:
    """Have all that this process runs end on Linux if it is killed meanwhile: what is stopped would stay so for ever.

    A process of its own waits for the end of a pipe that nobody writes to, which comes when this process is gone.
    """
    if sys.platform != "linux":
        yield
        return
    words = [sys.executable, "-I", "-S", "-c", _END_BEHIND, f"{MARK}={_OURS}.", str(GRACE_S)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True) as watcher:
        try:
            yield
        finally:
            watcher.kill()


def marked(mark: str) -> list[int]:
    """Return the processes with this mark; none if the system doesn't tell."""
    pids = []
    with contextlib.suppress(OSError):
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                    pids.append(int(folder.name))
    return pids
