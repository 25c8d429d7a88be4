"""Start a watch as a function, a script or a process of a command asks for it."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from syncscan.capture.captured_command import inheriting, with_startup
from syncscan.capture.main_script import Exit, run_main
from syncscan.capture.plan import Plan
from syncscan.capture.script_capture import ScriptRun
from syncscan.errors import UsageError
from syncscan.watching.alarm import AlarmCommand
from syncscan.watching.metrics import Sink, sinks_of
from syncscan.watching.single_capture import SingleCapture, safely
from syncscan.watching.watch import INTERVAL_S, Watch, logger
from syncscan.watching.watch_file import Alarm

VARIABLE = "SYNCSCAN_WATCH"
"""Environment variable with the watch that a process is to begin, as JSON."""
CAPTURED_STEPS = 5
"""Steps that are recorded on an alarm."""
MOST_CAPTURES = 3
"""Most captures on alarms: what grows on and on needs no further trace."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A watch as the command line asks for it."""

    out: str
    name: str = ""
    interval: float = INTERVAL_S
    capture_on_alarm: bool = False
    exports: tuple[str, ...] = ()
    on_alarm: str = ""
    """A command that is run on each alarm."""

    def variables(self) -> dict[str, str]:
        """Return the environment's variables with which a process of Python's watches itself."""
        return with_startup("syncscan.watching.start", VARIABLE, msgspec.json.encode(self).decode())

    def begin(self, *, lazy: bool = False, say: Callable[[str], None] = lambda sentence: None) -> Watch:
        """Begin it in this process, and return it.

        Args:
            lazy: make its file only once a step has ended.
            say: called with each alarm.
        """
        run = AlarmCommand(self.on_alarm)

        def on_alarm(alarm: Alarm) -> None:
            say(str(alarm))
            run(alarm)

        return watch(
            self.out,
            name=self.name or None,
            interval=self.interval,
            capture_on_alarm=self.capture_on_alarm,
            exports=self.exports,
            on_alarm=on_alarm,
            lazy=lazy,
        ).start()


def watch(
    out: str | Path = "syncscan-out",
    *,
    name: str | None = None,
    interval: float = INTERVAL_S,
    on_alarm: Callable[[Alarm], object] | None = None,
    capture_on_alarm: bool = False,
    exports: Iterable[str | Sink] = (),
    lazy: bool = False,
) -> Watch:
    """Watch this process for as long as it runs: where its step's host is, and how much of that is waiting.

    The watch begins with `start()` or `with`. Steps are counted by the optimizer; a loop without one calls `step()`
    of the watch, or its rounds are found.

    Args:
        out: the folder of the file that it writes, `NAME.PID.watch.jsonl`, for `syncscan watch`.
        name: what the file's name begins with; the program's name without one.
        interval: seconds of a window, for which each line's share is written.
        on_alarm: called with an alarm when a line waits for more of the step than in its own past; on a thread of the
            watch's.
        capture_on_alarm: capture some steps then, into the same folder.
        exports: where each window goes too: `prometheus:PORT`, `prometheus:HOST:PORT`, `prometheus:FILE`,
            `tensorboard:FOLDER`, or a function that is called with each record.
        lazy: make the file only once a step has ended.

    Returns:
        The watch.

    Raises:
        UsageError: arguments that mean nothing.
        MissingExtra: an export's package isn't there.
    """
    started = Watch(out, name=name, interval=interval, on_alarm=on_alarm, sinks=sinks_of(exports), lazy=lazy)
    if capture_on_alarm:
        started.capture = _Captures(started, Path(out).absolute())
    return started


class _Captures:
    """Captures some steps when it is called, on the thread that steps; `MOST_CAPTURES` times at most."""

    def __init__(self, watch: Watch, out: Path) -> None:
        self._watch, self._out = watch, out
        self._count = 0

    def __call__(self, why: str) -> None:
        if self._count == MOST_CAPTURES:
            return
        self._count += 1
        pause = contextlib.ExitStack()

        def done(run: ScriptRun) -> None:
            pause.close()
            self._watch.captured(run.paths, why, run.failed or (None if run.paths else "No step ended."))

        pause.enter_context(self._watch.paused())
        plan = Plan(1, 2, CAPTURED_STEPS, 1, 5)
        begin = functools.partial(safely, functools.partial(SingleCapture, self._out, plan, done, say=logger.info))
        threading.Thread(target=begin, name="syncscan-capture", daemon=True).start()


def run_watched(
    target: str, arguments: Sequence[str], wanted: Wanted, *, module: bool, say: Callable[[str], None]
) -> tuple[Exit, Watch]:
    """Run a script to its end as `python` would, watched, and return how it ended and the watch.

    Raises:
        UsageError: there is no such script.
    """
    if not module and not Path(target).exists():
        raise UsageError(f"There is no script at {target}.")
    with inheriting(wanted.variables()):
        wanted = replace(wanted, name=wanted.name or (target.rpartition(".")[2] if module else Path(target).stem))
        started = wanted.begin(lazy=True, say=say)
        try:
            ended = run_main(target, arguments, module=module)
        finally:
            started.stop()
    return ended, started


def begin() -> None:
    """Watch this process as its environment says, which has just imported torch."""
    msgspec.json.decode(os.environ[VARIABLE], type=Wanted).begin(lazy=True, say=_tell)


def _tell(sentence: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"syncscan: {sentence}\n")
