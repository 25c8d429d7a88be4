"""Runs jobs in separate processes and returns their outcomes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

import msgspec

from syncscan.errors import MissingExtra, installing
from syncscan.fixing.messages import ProgramJob, RunResult
from syncscan.scratch import Scratch

BOOT = """\
import sys
sys.path[:] = [{root!r}, *filter(None, sys.path)]
from syncscan.fixing.server import main
main()
"""
"""Runs this syncscan in a process whose folder may hold another; a script's folder then takes the place of `root`."""
LIMIT_S = 120.0


class Runs:
    """Runs jobs one after the other, each in a view of its own, and leaves no process and no file behind."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._folder = tempfile.TemporaryDirectory(prefix="syncscan-fix-")
        self._server: subprocess.Popen[str] | None = None
        self._count = 0
        self._last: Scratch | None = None
        self._kept: list[Scratch] = []

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        for scratch in self._kept:
            scratch.close()
        self._forget_last()
        self._folder.cleanup()

    def run(self, job: ProgramJob, *, keep: bool = False) -> RunResult:
        """Run a job; the result of a process that came to no end of its own has a `failure`.

        With `keep`, the files that it wrote stay until all runs are over, not only until the next one.
        """
        self._count += 1
        folder = Path(self._folder.name, str(self._count))
        folder.mkdir()
        job.output, job.folder = str(folder), str(Path.cwd())
        scratch = self._fresh(keep)
        job.scratch, job.layers = scratch.kind, list(map(str, scratch.folders))
        files = folder / "job", folder / "outcome"
        files[0].write_bytes(msgspec.msgpack.encode(job))
        code = self._forked(*map(str, files))
        outcome = _outcome(files[1], code, self._limit_s)
        outcome.printed = _text(folder / "stdout")
        outcome.errors = _text(folder / "stderr")
        outcome.written = {path: None if left is None else str(left) for path, left in scratch.written().items()}
        return outcome

    def _fresh(self, keep: bool) -> Scratch:
        """Make a view, and remove what the last run wrote."""
        self._forget_last()
        scratch = Scratch.made()
        if keep:
            self._kept.append(scratch)
        else:
            self._last = scratch
        return scratch

    def _forget_last(self) -> None:
        if self._last is not None:
            self._last.close()
            self._last = None

    def _forked(self, job: str, outcome: str) -> str:
        if self._server is None or self._server.poll() is not None:
            self._server = self._start()
        stdin, stdout = self._server.stdin, self._server.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(msgspec.json.encode((job, outcome, self._limit_s)).decode() + "\n")
            stdin.flush()
        except BrokenPipeError:
            pass
        answer = stdout.readline().strip()
        if not answer:
            raise MissingExtra("`syncscan fix` runs the program dry, which needs torch.", installing("capture"))
        return answer

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", BOOT.format(root=str(Path(__file__).parents[2]))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=_environment(),
        )


def _environment() -> dict[str, str]:
    """Return the environment of a program's process, with a fixed hash seed unless the user sets one."""
    return {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", **os.environ}


def _outcome(file: Path, code: str, limit_s: float) -> RunResult:
    if file.exists() and file.stat().st_size:
        return msgspec.msgpack.decode(file.read_bytes(), type=RunResult)
    if code == "late":
        return RunResult(code=-1, failure=f"it didn't end within {limit_s:g} s")
    return RunResult(code=1, failure=f"its process ended with {code}")


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
