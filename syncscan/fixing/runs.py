"""Runs jobs in processes forked by a server, which imports torch once, and returns their outcomes.

The server is `python -c BOOT`. Each line of its stdin names a file with a job and one for its outcome; when a job is
over, it writes a line with the job's exit code.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import weakref
from pathlib import Path
from types import TracebackType

import msgspec

from syncscan.capture.torch_hooks import unseen
from syncscan.errors import MissingExtra, installing
from syncscan.fixing.messages import ProgramJob, RunResult, raised
from syncscan.scratch import Scratch
from syncscan.scratch.environment import name_connections

BOOT = """\
import sys
sys.path[:] = [{root!r}, *filter(None, sys.path)]
from syncscan.fixing.runs import main
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


POLL_S = 0.01
IMPORTED = (
    "torch._dynamo",  # by an optimizer's first step
    "torch.utils.cpp_extension",  # by a simulated GPU
    "syncscan.dryrun.device_functions",
    "syncscan.dryrun.dispatch_mode",
    "syncscan.fixing.job_process",
)
"""Modules that each run needs, imported once here and not in each fork."""


def main() -> None:
    """Answer until stdin ends: a line of JSON a job, `[job file, outcome file, seconds]`."""
    for name in IMPORTED:
        importlib.import_module(name)
    unseen()
    for registration in list(weakref.finalize._registry):  # type: ignore[attr-defined]
        registration.atexit = False  # torch would take its 170 libraries apart at the end of each run
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        job, outcome, limit = msgspec.json.decode(line, type=tuple[str, str, float])
        code = _forked(job, outcome, limit)
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _forked(job: str, outcome: str, limit_s: float) -> str:
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _run(job, outcome)
        finally:
            os._exit(70)
    until = time.monotonic() + limit_s
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _end_group(pid)
            return str(os.waitstatus_to_exitcode(status))
        if time.monotonic() > until:
            _end_group(pid)
            os.waitpid(pid, 0)
            return "late"
        time.sleep(POLL_S)


def _end_group(pid: int) -> None:
    """End a program and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _run(job_file: str, outcome_file: str) -> None:
    """Run a job in this process and end it."""
    job = msgspec.msgpack.decode(Path(job_file).read_bytes(), type=ProgramJob)
    os.chdir(job.folder)
    _redirect(Path(job.output))
    answer = open(outcome_file, "wb")  # noqa: SIM115  (outside of the view, and closed by the process's end)
    from syncscan.fixing import job_process

    try:
        Scratch(job.scratch, tuple(map(Path, job.layers))).enter()
        machines: list[str] = []
        name_connections(machines.append)
        outcome = job_process.run(job)
        outcome.machines = machines
    except BaseException as error:
        traceback.print_exc()
        outcome = RunResult(code=1, failure=raised(error, lambda path: False).text)
    answer.write(msgspec.msgpack.encode(outcome))
    answer.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _redirect(folder: Path) -> None:
    """Send the program's output to files, and give it an empty stdin."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(os.devnull)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
