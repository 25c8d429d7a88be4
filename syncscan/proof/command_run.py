"""A command that runs with all that it starts: paused, resumed and ended together, its lines read as they come."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncscan.proof.child_process import MARK, marked
from syncscan.proof.trial import SHOWN
from syncscan.scratch import Scratch

MOST = 4 << 20
"""Bytes of a command's output that are held."""
LOOK_S = 0.05
"""How often a command is looked after while its output is awaited."""
ENTER = """\
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


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A line of a shell, the folder in which it runs, and variables of its environment."""

    line: str
    name: str = ""
    folder: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=dict)


class CommandRun:
    """A run of a command.

    Args:
        command: what to run; a `scratch` view holds what it writes, None lets it write into the user's files.
        find: returns what is wanted of a line, or None; None if nothing is wanted.

    Attributes:
        taken: what `find` returned, as it comes.
        lines: what it printed on stdout.
    """

    def __init__(self, command: ShellCommand, scratch: Scratch | None, find: Callable[[str], Any] | None) -> None:
        self._command, self._scratch, self._find = command, scratch, find
        self._mark, self._paused, self._closed = uuid.uuid4().hex, False, False
        self.taken: list[Any] = []
        self.lines: list[str] = []
        self._end: collections.deque[str] = collections.deque(maxlen=SHOWN)
        self._held, self._news = 0, threading.Condition()
        self.began, self.seconds = time.monotonic(), 0.0
        self._process = subprocess.Popen(
            self._words(),
            cwd=command.folder,
            env={"PYTHONUNBUFFERED": "1", **os.environ, **command.environment, MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=(stream, of), daemon=True)
            for stream, of in ((self._process.stdout, self.lines), (self._process.stderr, []))
        ]
        for reader in self._readers:
            reader.start()

    def wait(self, until: Callable[[], bool], deadline: float) -> bool:
        """Wait for a condition on what it has printed; return False if it ended without.

        Raises:
            TimeoutError: it neither held nor did the command end before the deadline, by `time.monotonic`.
        """
        while True:
            with self._news:
                if until():
                    return True
                self._news.wait(LOOK_S)
            if self._process.poll() is not None:
                self._over()
                return until()
            if time.monotonic() > deadline:
                raise TimeoutError

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

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
        if self._process.poll() is None:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._over()
        if self._scratch is not None:
            self._scratch.close()

    def end_of_output(self) -> str:
        """Return its last lines, of stderr too, for a message."""
        return "\n  ".join(["The end of its output:", *self._end]) if self._end else "It printed nothing."

    def _words(self) -> list[str]:
        if self._scratch is None:
            return ["/bin/sh", "-c", self._command.line]
        order = json.dumps([self._scratch.kind, [str(path) for path in self._scratch.folders], self._command.line])
        return [sys.executable, "-c", ENTER.format(root=str(Path(__file__).parents[2])), order]

    def pids(self) -> list[int]:
        """Return its process and whatever else carries its mark, such as ranks of a launcher."""
        return [self._process.pid, *(pid for pid in marked(self._mark) if pid != self._process.pid)]

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
        for pid in self.pids()[1:]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _over(self) -> None:
        if not self.seconds:
            self.seconds = time.monotonic() - self.began
            for reader in self._readers:
                reader.join(1.0)

    def _read(self, stream: object, lines: list[str]) -> None:
        left = b""
        with contextlib.suppress(OSError, ValueError), stream:  # type: ignore[attr-defined]
            while piece := os.read(stream.fileno(), 1 << 16):  # type: ignore[attr-defined]
                *whole, left = (left + piece).replace(b"\r", b"\n").split(b"\n")
                self._add(whole, lines)
        self._add([left], lines)

    def _add(self, pieces: list[bytes], lines: list[str]) -> None:
        with self._news:
            for line in (piece.decode("utf-8", "replace") for piece in pieces if piece.strip()):
                self._held += len(line)
                if self._held <= MOST:
                    lines.append(line)
                self._end.append(line)
                if self._find is not None and (taken := self._find(line)) is not None:
                    self.taken.append(taken)
            self._news.notify_all()
