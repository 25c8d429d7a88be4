"""Analyze the traces of a job in several processes on this machine.

Each process has one trace at a time and a share of the memory, enforced by the system. A process that is killed loses
its own trace only. A trace that needs more than its share, or whose process was killed, is read again by fewer
processes with larger shares, and finally by one with all the memory.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, cast

from syncscan.errors import ProgramFailed
from syncscan.fleet.worker import TraceOutcome
from syncscan.load import memory_check
from syncscan.load.second_process import ALONE

LEAST_BYTES = 400_000_000
"""Smallest share of a process, unless more processes were requested: a process itself takes a quarter of it."""
TIMES_KILLED = 2
"""Kills of its process after which a trace is given up."""
_FEWER = 4
"""Factor by which each round has fewer processes than the previous one."""
_CODE = "import sys; sys.path[:] = {!r}; from syncscan.fleet.worker import main; main()"


def workers_for(traces: int, jobs: int | None = None, max_memory: int | None = None) -> tuple[int, int | None]:
    """Return the number of processes for a job, by default one per processor if memory allows, and all their memory.

    The memory is bytes; None where the system doesn't report what is free.
    """
    most = memory_check.available() if max_memory is None else max_memory
    if jobs is None:
        jobs = _processors() if most is None else min(_processors(), max(1, most // LEAST_BYTES))
    return max(1, min(jobs, traces)), most


def outcomes(
    paths: Sequence[str], options: Mapping[str, Any], count: int, memory: int | None
) -> Iterator[tuple[str, TraceOutcome]]:
    """Yield each path with its trace's outcome as soon as there is one; close the iterator to end the processes."""
    waiting, killed = list(paths), Counter[str]()
    while waiting:
        again: list[str] = []
        for path, outcome in _round(waiting, options, count, memory):
            killed[path] += outcome.killed
            too_large = outcome.too_large and count > 1
            if too_large or (outcome.killed and killed[path] < TIMES_KILLED):
                again.append(path)
            else:
                yield path, outcome
        waiting, count = again, max(1, min(count // _FEWER, len(again)))


def _round(
    paths: Sequence[str], options: Mapping[str, Any], count: int, memory: int | None
) -> Iterator[tuple[str, TraceOutcome]]:
    waiting, share = deque(paths), None if memory is None else memory // count
    with contextlib.ExitStack() as ending, selectors.DefaultSelector() as answers:

        def start() -> None:
            worker = ending.enter_context(_Worker(share))
            answers.register(worker.answers, selectors.EVENT_READ, worker)
            worker.give(waiting.popleft(), options)

        for _ in range(min(count, len(paths))):
            start()
        while answers.get_map():
            for key, _ in answers.select():
                worker: _Worker = key.data
                outcome = worker.outcome()
                if outcome.killed or not waiting:
                    answers.unregister(worker.answers)
                    worker.end()
                    if waiting and outcome.killed:
                        start()
                    yield worker.path, outcome
                else:
                    path = worker.path
                    worker.give(waiting.popleft(), options)
                    yield path, outcome


class _Worker:
    """A process that runs `fleet.worker`; as a context manager, it ends the process.

    It isn't a child of `multiprocessing`, which would run the user's script again in each, and where a killed child
    breaks the whole pool. Its own session shields it from the terminal's Ctrl-C: its parent ends it.
    """

    def __init__(self, share: int | None) -> None:
        self.path = ""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE.format(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, ALONE: "1"},
            )
        except OSError as e:
            raise ProgramFailed(f"No process can be started: {e.strerror or e}.", "Use fewer, with jobs.") from None
        self._orders = cast(IO[bytes], self._process.stdin)
        self.answers = cast(IO[bytes], self._process.stdout)
        self._send(share)

    def give(self, path: str, options: Mapping[str, Any]) -> None:
        self.path = path
        self._send((path, dict(options)))

    def outcome(self) -> TraceOutcome:
        try:
            return cast(TraceOutcome, pickle.load(self.answers))
        except (EOFError, pickle.UnpicklingError):
            return TraceOutcome(reason=f"The process that read it {_ended(self._process.wait())}.", killed=True)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._orders, self.answers):
            with contextlib.suppress(OSError):
                pipe.close()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()

    def _send(self, order: object) -> None:
        with contextlib.suppress(BrokenPipeError):  # its answer, none, says that it is over
            pickle.dump(order, self._orders)
            self._orders.flush()


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    why = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"was ended by {name}{why}"


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1
