"""The process that runs programs: it imports torch once, and forks for each job.

    python -c BOOT

Each line of stdin names a file with a job and one for its outcome; when a job is over a line with its exit code is
written to stdout.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sys
import time
import traceback
import weakref
from pathlib import Path

import msgspec

from syncscan.capture.torch_hooks import unseen
from syncscan.fixing.messages import ProgramJob, RunResult, raised
from syncscan.scratch import Scratch
from syncscan.scratch.environment import name_connections

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
