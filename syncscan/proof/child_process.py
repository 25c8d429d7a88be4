"""Run a command as a process that answers requests and leaves nothing behind.

It is the head of a group of its own and has nothing to read on stdin. What it prints is read away, and the end of it
kept to be shown if it fails. When it is over, or is to be, its group is ended, and on Linux also what left the group
but still carries its mark in its environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

KEPT = 20_000
"""Bytes of output that are kept."""
POLL_S = 0.05
"""How often a process is looked after while an answer of it is awaited: its end doesn't always close the pipe, which
its own children may hold."""
GRACE_S = 10.0
"""Seconds that a process may take to end after SIGTERM: what it runs at exit is the user's."""
MARK = "SYNCSCAN_TRIAL"


class ChildProcess:
    """A running command that is sent orders and gives answers, both lines of JSON.

    Args:
        command: what to run; the numbers of its two pipes are added to it.
        folder: where it runs.
        environment: its environment; a mark is added.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._mark = uuid.uuid4().hex
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*command, str(orders), str(answers)],
                cwd=folder,
                env={**environment, MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(orders, answers),
                start_new_session=True,
            )
        finally:
            os.close(orders)
            os.close(answers)
        self._code: int | None = None
        self._left = b""
        self._printed = bytearray()
        self._reader = threading.Thread(target=self._read_away, daemon=True)
        self._reader.start()

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
            over = self._process.poll() is not None
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
        if self._code is not None:
            return self._code
        os.close(self._orders)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pid in marked(self._mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._code = self._process.wait()
        self._reader.join(1.0)
        os.close(self._answers)
        return self._code

    @property
    def printed(self) -> str:
        return bytes(self._printed).decode("utf-8", "replace")

    def _read_away(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        with contextlib.suppress(OSError, ValueError), stream:
            while piece := os.read(stream.fileno(), 1 << 16):
                self._printed += piece
                del self._printed[:-KEPT]


def marked(mark: str) -> list[int]:
    """Return the processes with this mark; none if the system doesn't tell."""
    pids = []
    with contextlib.suppress(OSError):
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                    pids.append(int(folder.name))
    return pids
