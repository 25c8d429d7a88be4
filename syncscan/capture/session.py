"""A training loop's steps go in, one trace file a cycle comes out: `with syncscan.profile(...) as prof: … prof.step()`.

A capture runs `settle` and `calibrate` steps without the profiler, to know what a step takes when nobody looks, and
then `repeat` cycles of wait, warmup and active steps under `torch.profiler`, with the source line of every sync.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from syncscan.capture import device, lines, table, warned, write
from syncscan.capture.plan import Plan
from syncscan.errors import UsageError

SCHEMA = "syncscan.capture/1"

NO_DEVICE = (
    "No GPU here: a CPU has no host-device syncs to measure. The trace shows where the host's time goes, and no more."
)
NO_CALLBACKS = "This torch has no sync callbacks: the lines come from its sync debug mode, which sees fewer syncs."


def profile(
    out: str | os.PathLike[str] = "syncscan-out",
    name: str | None = None,
    *,
    wait: int = 1,
    warmup: int = 4,
    active: int = 3,
    repeat: int = 1,
    stacks: bool = False,
    shapes: bool = False,
    calibrate: int = 10,
    settle: int = 3,
    notify: Callable[[str], None] | None = None,
) -> Session:
    """Capture a few steps of a loop as a trace that syncscan, TensorBoard and Perfetto read.

    Args:
        out: folder for the traces; made if missing.
        name: what a file's name begins with; the script's name, and the rank where there are several, if not given.
        wait: steps of each cycle without the profiler.
        warmup: steps of each cycle under the profiler whose events are thrown away.
        active: steps of each cycle that are recorded.
        repeat: cycles; each writes a file.
        stacks: record Python frames too. The lines of syncs are recorded without; frames stretch the host's time.
        shapes: record the shapes of inputs.
        calibrate: steps that are timed before the first cycle, without the profiler; 0 leaves this out.
        settle: steps before those, untimed.
        notify: what to call with a sentence for the user; `warnings.warn` if not given.

    Returns:
        A session, to be used as a context manager, whose `step()` is to be called at the end of each step.

    Raises:
        UsageError: numbers of steps that can't mean anything, or a folder that can't be written.
    """
    plan = Plan(wait, warmup, active, repeat, calibrate, settle)
    return Session(Path(out), name or default_name(), plan, stacks=stacks, shapes=shapes, notify=notify)


def default_name() -> str:
    """The running script's name, fit for a file, with the rank where torchrun or the like has set one."""
    stem = Path(sys.argv[0]).stem if sys.argv and Path(sys.argv[0]).is_file() else ""
    rank, world = os.environ.get("RANK"), os.environ.get("WORLD_SIZE", "1")
    suffix = f"_rank{rank}" if rank is not None and world != "1" else ""
    return clean_name(stem) + suffix


def clean_name(name: str) -> str:
    """The name with everything that could trouble a file system or TensorBoard's file pattern replaced by `_`."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_") or "trace"


class Session:
    """One capture of a running loop.

    `paths` holds the traces written so far, `step_us` the unprofiled time of a step once it was measured, `done` says
    that the last cycle is over; steps after that cost nothing.
    """

    running: Session | None = None
    """The session that is open in this process; torch's profiler allows only one."""

    opened: Callable[[Session], None] | None = None
    """Called with each session that opens; the script runner learns here that a script captures itself."""

    def __init__(
        self,
        out: Path,
        name: str,
        plan: Plan,
        *,
        stacks: bool = False,
        shapes: bool = False,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.out, self.name, self.plan = out, clean_name(name), plan
        self.stacks, self.shapes = stacks, shapes
        self.paths: list[Path] = []
        self.step_us: float | None = None
        self.steps = 0
        self.done = False
        self.finished: Callable[[], None] | None = None
        self._notify = notify or _warn
        self._pid = os.getpid()
        self._began = 0.0
        self._profiler: Any = None
        self._fallback = warned.Warned()
        self._taken: dict[str, Any] = {"lines": None, "events": []}
        self._clocks: dict[str, Any] = {}
        self._cycles = 0

    def __enter__(self) -> Session:
        if Session.running is not None:
            raise UsageError("A capture is running already, and torch's profiler allows one at a time.")
        write.prepare(self.out)
        if Session.opened is not None:
            Session.opened(self)
        Session.running = self
        if device.backend() is None:
            self._notify(NO_DEVICE)
        self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.close_quietly()

    @property
    def profiling(self) -> bool:
        """Whether the profiler's own schedule has begun, its waiting steps included."""
        return self._profiler is not None

    @property
    def complete(self) -> bool:
        """Whether every cycle was recorded to its end."""
        return self._cycles == self.plan.repeat

    @property
    def recording(self) -> bool:
        """Whether the step that runs now is being recorded."""
        return self._action().startswith("RECORD")

    def step(self) -> None:
        """Say that a step has ended, and with it that the next begins."""
        if self.done or os.getpid() != self._pid:
            return
        self.steps += 1
        if self._profiler is not None:
            self._step_profiler()
            return
        if self.steps == self.plan.settle:
            self._begin_calibration()
        if self.steps == self.plan.unprofiled:
            self._end_calibration()
            self._start_profiler()

    def restart(self) -> bool:
        """Begin again with the first step, if the profiler hasn't started; True where that could be done."""
        if self._profiler is not None or self.done:
            return False
        self.steps = 0
        self._begin()
        return True

    def close(self) -> None:
        """End the capture now, and write what is recorded of a cycle that is not complete."""
        if self.done or os.getpid() != self._pid:
            return
        self.done = True
        Session.running = None
        self._fallback.close()
        if self._profiler is not None:
            if self.recording:
                self._take(cut=True)
            self._profiler.stop()
        lines.end()

    def close_quietly(self) -> None:
        """End the capture where something else has failed already: a failure of this is told, not raised."""
        try:
            self.close()
        except Exception as failure:
            self._notify(f"What was recorded until then could not be saved: {failure}")

    def metadata(self) -> dict[str, Any]:
        """What is stored in the trace under the key "syncscan", for the cycle that has just ended."""
        return {
            "schema": SCHEMA,
            "syncscan": importlib.import_module("syncscan").__version__,
            "unprofiled_step_us": self.step_us,
            "calibrated_steps": self.plan.calibrate if self.step_us is not None else 0,
            "device_drained": True,
            **self._taken,
            **({"clocks": self._clocks} if self._clocks else {}),
        }

    def _begin(self) -> None:
        if self.plan.unprofiled == 0:
            self._start_profiler()
        elif self.plan.settle == 0:
            self._begin_calibration()

    def _begin_calibration(self) -> None:
        device.drain()
        self._began = time.perf_counter()

    def _end_calibration(self) -> None:
        device.drain()
        self.step_us = (time.perf_counter() - self._began) / self.plan.calibrate * 1e6
        self._sample("calibrated")

    def _start_profiler(self) -> None:
        torch_profiler = importlib.import_module("torch.profiler")
        warnings.filterwarnings("ignore", message=".*Profiler clears events at the end of each cycle")
        plan = self.plan
        self._profiler = torch_profiler.profile(
            schedule=torch_profiler.schedule(
                wait=plan.wait, warmup=plan.warmup, active=plan.active, repeat=plan.repeat
            ),
            on_trace_ready=self._write,
            with_stack=self.stacks,
            record_shapes=self.shapes,
        )
        self._profiler.start()
        self._follow()

    def _step_profiler(self) -> None:
        if self._action() == "RECORD_AND_SAVE":
            self._take(cut=False)
        self._fallback.close()
        self._profiler.step()
        if self.complete:
            self.close()
            if self.finished is not None:
                self.finished()
        else:
            self._follow()

    def _action(self) -> str:
        return str(self._profiler.current_action.name) if self._profiler is not None else "NONE"

    def _follow(self) -> None:
        """Prepare the lines for the step that begins now, which the profiler passes over, warms up on or records."""
        if self._action() == "NONE" or device.backend() is None:
            return
        exact = lines.arm()
        if exact and self.recording:
            lines.begin()
        elif not exact and self._action() == "WARMUP":
            self._fallback.open()

    def _take(self, *, cut: bool) -> None:
        """Take over what the callbacks saw, before the profiler's own closing synchronise fires them.

        Args:
            cut: the step that runs now is not complete.
        """
        self._sample("recorded")
        window = lines.end()
        self._taken = {
            "lines": table.lines_table(window) if window is not None else self._fallback.table(),
            "events": [list(event) for event in window.events] if window is not None else [],
            "unfinished_step": self._profiler.step_num if cut else None,
        }

    def _sample(self, when: str) -> None:
        clocks = device.clocks()
        if clocks is not None:
            self._clocks[when] = clocks

    def _write(self, profiler: Any) -> None:
        self.paths.append(write.write_trace(profiler, self.out, self.name, self.metadata()))
        self._cycles += self._taken.get("unfinished_step") is None


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=3)
