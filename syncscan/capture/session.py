"""Capture a few steps of a loop: `with syncscan.profile(...) as prof: … prof.step()`.

A capture runs `settle` and `calibrate` steps without the profiler, to know a step's time without it, and
then `repeat` cycles of wait, warmup and active steps, with the source line of every sync, and samples some more steps
if asked to. Before, between and after captures a step costs a comparison. Nothing that goes wrong in a capture reaches
the loop.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from syncscan.capture import device, sync_lines, torch_hooks, trace_file
from syncscan.capture.capture_run import CaptureRun
from syncscan.capture.plan import Demand, Plan
from syncscan.capture.program_name import clean_name, default_name
from syncscan.capture.signals import SignalRequest, TerminationHandler, can_handle
from syncscan.errors import UsageError

NO_DEVICE = "No GPU here: a CPU has no host-device syncs to measure. The trace only shows where the host's time goes."
NO_CALLBACKS = (
    "This torch has no usable sync callbacks, so lines of syncs aren't recorded: with stacks, those of functions are."
)


def profile(
    out: str | os.PathLike[str] = "syncscan-out",
    name: str | None = None,
    *,
    wait: int = 1,
    warmup: int = 4,
    active: int | Literal["auto"] = 3,
    repeat: int = 1,
    stacks: bool = False,
    shapes: bool = False,
    calibrate: int = 10,
    settle: int = 3,
    sample: float = 0.0,
    start_at: int | None = None,
    every: int | None = None,
    on_signal: str | int | None = None,
    on_trigger: bool = False,
    notify: Callable[[str], None] | None = None,
) -> Session:
    """Capture a few steps of a loop as a trace that syncscan, TensorBoard and Perfetto read.

    Args:
        out: folder for the traces; made if missing.
        name: what a file's name begins with; the script's name, and the rank where there are several, if not given.
        wait: steps of each cycle without the profiler.
        warmup: steps of each cycle under the profiler whose events are thrown away.
        active: steps of each cycle that are recorded; `"auto"`: 3, or a whole period where steps differ in turn.
        repeat: cycles; each writes a file.
        stacks: record Python frames too. The lines of syncs are recorded without; frames lengthen the host's time.
        shapes: record the shapes of inputs.
        calibrate: steps that are timed before the first cycle, without the profiler; 0 leaves this out.
        settle: steps before those, untimed.
        sample: seconds after the last cycle in which it is sampled where the steps' thread is, 67 to 193 times a second
            and without the profiler; 0 leaves this out. On Linux, in the main thread.
        start_at: steps before the capture begins.
        every: begin another capture each time that so many steps have passed since the last began.
        on_signal: begin a capture whenever this signal has come, e.g. `"USR2"`.
        on_trigger: begin a capture only when `trigger()` of the session is called.
        notify: function to call with a sentence for the user; by default `warnings.warn`.

    Returns:
        A session, to be used as a context manager, whose `step()` is to be called at the end of each step.

    Raises:
        UsageError: numbers of steps that can't mean anything, or a folder that can't be written.
    """
    recorded = 3 if active == "auto" else active
    plan = Plan(wait, warmup, recorded, repeat, calibrate, settle, sample, active == "auto", stacks, shapes)
    demand = Demand(start_at, every, on_signal, on_trigger)
    return Session(Path(out), name or default_name(), plan, demand, notify)


class Session:
    """Captures of a running loop.

    `paths` holds the traces written so far, `step_us` the unprofiled time of a step once it was measured, `done` says
    that no capture is under way or can still become due, `failed` what went wrong, if anything did. `steps` counts the
    loop's steps since the session was opened.
    """

    running: Session | None = None
    """The session that is open in this process; torch's profiler allows only one."""

    opened: Callable[[Session], None] | None = None
    """Callback for sessions about to open, which tells the script runner that a script captures itself."""

    def __init__(
        self,
        out: Path,
        name: str,
        plan: Plan,
        demand: Demand | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.plan, self._name = plan, clean_name(name)
        self._out = out.absolute()  # a loop that changes its folder still writes to the requested one
        self.demand = demand or Demand()
        self.paths: list[Path] = []
        self.step_us: float | None = None
        self.steps = 0
        self.done = False
        self.failed: str | None = None
        self.captures = 0
        """Captures that ran to their end."""
        self.finished: Callable[[], None] | None = None
        """Callback at the end of the step in which the last capture ended or failed, and no other can become due."""
        self.wrote: Callable[[Path], None] | None = None
        """Callback for each trace as soon as it is written."""
        self.grows = False
        """Whether `add` may be called when captures are over."""
        self._tell = notify or _warn
        self._said: set[str] = set()
        self._pid = os.getpid()
        self._entered = False
        self._busy = False
        self._resume: Callable[[], None] | None = None
        self._course: CaptureRun | None = None
        self._last: CaptureRun | None = None
        self._cut_short = False
        self._signal_request: SignalRequest | None = None
        self._ending: TerminationHandler | None = None
        self._stay_here: Callable[[], None] = lambda: None

    def __enter__(self) -> Session:
        trace_file.prepare(self._out)
        if Session.opened is not None:  # before the next line: it may make room for this session
            Session.opened(self)
        if Session.running is not None:
            raise UsageError("A capture is already running, and torch's profiler allows only one at a time.")
        self._entered = True
        self._take_place()
        if self.demand.on_signal is not None:
            self._listen(int(self.demand.on_signal))
        if device.backend() is None:
            self._say(NO_DEVICE)
        elif not sync_lines.exact():
            self._say(NO_CALLBACKS)
        if self.demand.due(0):
            self._run_guarded(self._begin)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def profiling(self) -> bool:
        """Return whether the profiler is on, in a warm-up or a recorded step."""
        return self._course is not None and self._course.profiling

    @property
    def restartable(self) -> bool:
        """Return whether the first capture hasn't reached its first cycle, so that it can still restart."""
        return self.captures == 0 and (self._course is None or self._course.unprofiled)

    @property
    def complete(self) -> bool:
        """Return whether a capture ran to its end, none has failed, and the last trace holds whole cycles only."""
        return self.captures > 0 and not self._cut_short and self.failed is None

    def add(self, more: dict[str, Any], failed: str) -> None:
        """Add to what is stored in the last capture's traces."""
        course = self._last
        if course is not None:
            self._run_guarded(lambda: course.add(more, failed))

    def trigger(self) -> None:
        """Request one more capture, which begins when the current step has ended; safe on any thread.

        Also after the last one, as long as the session is open.
        """
        self.demand.ask()
        if self.done and self._entered and Session.running is None:
            self.done = False
            self._take_place()

    def step(self) -> None:
        """Mark the end of a step, and with it the begin of the next."""
        if self.done or os.getpid() != self._pid:
            return
        self.steps += 1
        if self._course is not None:
            self._run_guarded(self._advance)
        else:
            if self._signal_request is not None:
                self._signal_request.reinstall()
            if self.demand.due(self.steps):
                self._run_guarded(self._begin)
        if self.done and self.finished is not None:
            self.finished()

    def restart(self) -> bool:
        """Restart with the first step, if that is possible; return whether it was."""
        if self.done or not self.restartable:
            return False
        self.steps = 0
        if self._course is not None:
            self._run_guarded(self._begin)
        return True

    def close(self) -> None:
        """End the session now, and write what is recorded of an incomplete cycle.

        Nothing is raised: failures are reported, and everything is off afterwards.
        """
        if os.getpid() != self._pid:
            return
        if self._course is not None:
            self._run_guarded(self._cut)
        self.done, self._entered = True, False
        self._leave()

    # What follows runs inside `_run_guarded`, or on the way out.

    def _run_guarded(self, action: Callable[[], None]) -> None:
        """Run a part of a capture, so that none of its failures reaches the loop, and no signal interrupts it."""
        self._busy = True
        try:
            action()
        except Exception as error:
            self._fail(error)
        except BaseException:
            self._abandon()
            raise
        finally:
            self._busy = False
            if self.done:
                self._leave()
            resume, self._resume = self._resume, None
            if resume is not None:
                resume()

    def _begin(self) -> None:
        self.step_us = None
        if self._course is not None:
            self._course.abandon()
        if self._ending is None and can_handle():
            self._ending = TerminationHandler(self._end_by)
        self._course = self._last = CaptureRun(
            self.plan, self._out, self._name, self.steps, self._say, self._write, self._give_way, self.grows
        )
        self._course.start()

    def _advance(self) -> None:
        course = self._course
        if course is None:
            return
        course.step()
        if course.times is not None:
            self.step_us = course.times.typical
        if course.over:
            self.captures += 1
            self._idle()

    def _cut(self) -> None:
        """End a capture early, and write what there is."""
        if self._course is not None:
            self._course.cut()
            self.captures += self._course.over
        self._idle()

    def _write(self, path: Path, cut: bool) -> None:
        self.paths.append(path)
        self._cut_short = cut
        if self.wrote is not None:
            self.wrote(path)

    def _idle(self) -> None:
        self._course = None
        self._signals_back()
        self.done = not self.demand.pending

    def _abandon(self) -> None:
        """Switch everything off, and discard the current recording."""
        try:
            if self._course is not None:
                self._course.abandon()
        finally:
            self._idle()

    def fail(self, reason: str) -> None:
        """Report why there is no capture; the loop continues without."""
        self.failed = reason
        self.done = not self.demand.standing
        self._say(f"The capture failed and has ended; the program continues: {reason}")

    def _fail(self, error: Exception) -> None:
        self.fail(str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}")
        try:
            self._abandon()
        except Exception as another:
            self._say(f"It couldn't be turned off entirely: {another}")

    def _give_way(self) -> None:
        """Give way to a profiler that the program starts from within a step."""
        if self._busy or not self.profiling:
            return
        self._say("The program starts its own profiler, so the capture stops and keeps its data.")
        self._run_guarded(self._cut)

    def _end_by(self, signal_name: str, resume: Callable[[], None]) -> bool:
        """End the capture before a signal ends the process; return False where that must wait a little."""
        if self._busy:
            self._resume = self._resume or resume
            return False
        if self._course is not None:
            self._run_guarded(self._cut)
        course = self._last
        outcome = f"kept {course.paths[-1]}" if course and course.paths else "nothing was recorded yet"
        step = course.ended + 1 if course else 1
        where = f"step {step} of {self.plan.steps} of a capture" if step <= self.plan.steps else "the end of a capture"
        self._say(f"{signal_name} in {where}: {outcome}.")
        return True

    def _take_place(self) -> None:
        Session.running = self
        self._stay_here = torch_hooks.in_child(self._forked)

    def _leave(self) -> None:
        """Release everything that the session holds besides a capture."""
        if Session.running is self:
            Session.running = None
        self._signals_back()
        if self._signal_request is not None:
            self._signal_request.leave()
            self._signal_request = None
        self._stay_here()

    def _signals_back(self) -> None:
        ending, self._ending = self._ending, None
        if ending is not None:
            ending.leave()

    def _listen(self, number: int) -> None:
        if can_handle():
            self._signal_request = SignalRequest(number, self.demand.ask)
        else:
            self._say("Only the main thread can handle signals; this session was opened on another thread.")

    def _forked(self) -> None:
        """Disable the session in a forked child: it belongs to the parent."""
        self.done = True
        Session.running = None

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            with contextlib.suppress(Exception):  # a closed stderr, or warnings that are errors
                self._tell(sentence)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)
