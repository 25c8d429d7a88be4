"""A loop's steps go in, trace files of a few of them come out: `with syncscan.profile(...) as prof: … prof.step()`.

A capture runs `settle` and `calibrate` steps without the profiler, to know what a step takes when nobody looks, and
then `repeat` cycles of wait, warmup and active steps, with the source line of every sync. Before, between and after
captures a step costs a comparison. Nothing that goes wrong in a capture reaches the loop.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from syncscan.capture import cupti, device, fork, lines, recorder, write
from syncscan.capture.calibration import Calibration, StepTimes
from syncscan.capture.demand import Demand
from syncscan.capture.plan import Phase, Plan
from syncscan.capture.recorder import Cycle, Recorder
from syncscan.capture.signals import Ending, Wish, can_handle
from syncscan.errors import UsageError

SCHEMA = "syncscan.capture/1"

NO_DEVICE = (
    "No GPU here: a CPU has no host-device syncs to measure. The trace shows where the host's time goes, and no more."
)
NO_CALLBACKS = (
    "This torch's sync callbacks are missing, or couldn't be stopped again: lines come from its sync debug mode, which"
    " sees fewer syncs."
)
OTHER_PROFILER = (
    "The program runs a profiler of its own, and torch allows one at a time: the capture waits for its end."
)


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
        active: steps of each cycle that are recorded.
        repeat: cycles; each writes a file.
        stacks: record Python frames too. The lines of syncs are recorded without; frames stretch the host's time.
        shapes: record the shapes of inputs.
        calibrate: steps that are timed before the first cycle, without the profiler; 0 leaves this out.
        settle: steps before those, untimed.
        start_at: steps before the capture begins.
        every: begin another capture each time that so many steps have passed since the last began.
        on_signal: begin a capture whenever this signal has come, e.g. `"USR2"`.
        on_trigger: begin a capture only when `trigger()` of the session is called.
        notify: what to call with a sentence for the user; `warnings.warn` if not given.

    Returns:
        A session, to be used as a context manager, whose `step()` is to be called at the end of each step.

    Raises:
        UsageError: numbers of steps that can't mean anything, or a folder that can't be written.
    """
    plan = Plan(wait, warmup, active, repeat, calibrate, settle)
    demand = Demand(start_at, every, on_signal, on_trigger)
    return Session(Path(out), name or default_name(), plan, demand, stacks=stacks, shapes=shapes, notify=notify)


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
    """Captures of a running loop.

    `paths` holds the traces written so far, `step_us` the unprofiled time of a step once it was measured, `done` says
    that no capture is under way or can still become due, `failed` what went wrong, if anything did. `steps` counts the
    loop's steps since the session was opened.
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
        demand: Demand | None = None,
        *,
        stacks: bool = False,
        shapes: bool = False,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        # A loop that changes its folder writes where it was asked to all the same.
        self.out, self.name, self.plan = out.absolute(), clean_name(name), plan
        self.demand = demand or Demand()
        self.stacks, self.shapes = stacks, shapes
        self.paths: list[Path] = []
        self.step_us: float | None = None
        self.steps = 0
        self.done = False
        self.failed: str | None = None
        self.captures = 0
        """Captures that ran to their end."""
        self.finished: Callable[[], None] | None = None
        """Called when a capture has ended and no other can become due."""
        self.wrote: Callable[[Path], None] | None = None
        """Called with each trace as soon as it is there."""
        self._tell = notify or _warn
        self._told: set[str] = set()
        self._pid = os.getpid()
        self._entered = False
        self._open = False
        self._busy = False
        self._cut_short = False
        self._phases: list[tuple[Phase, int]] = []
        self._left = 0
        self._began = 0
        self._first = 0
        self._cycles = 0
        self._paths_before = 0
        self._calibration: Calibration | None = None
        self._times: StepTimes | None = None
        self._undisturbed = True
        self._recorder: Recorder | None = None
        self._clocks: dict[str, Any] = {}
        self._wish: Wish | None = None
        self._ending: Ending | None = None
        self._stay_here: Callable[[], None] = lambda: None

    def __enter__(self) -> Session:
        if Session.running is not None:
            raise UsageError("A capture is running already, and torch's profiler allows one at a time.")
        write.prepare(self.out)
        if Session.opened is not None:
            Session.opened(self)
        self._entered = True
        self._take_place()
        if self.demand.on_signal is not None:
            self._listen(int(self.demand.on_signal))
        if device.backend() is None:
            self._say(NO_DEVICE)
        elif not lines.exact():
            self._say(NO_CALLBACKS)
        if self.demand.due(0):
            self._guarded(self._begin)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def capturing(self) -> bool:
        """Whether a capture is under way: its settling, calibrating and waiting steps count."""
        return bool(self._phases)

    @property
    def profiling(self) -> bool:
        """Whether the profiler is on, in a step that warms it up or is recorded."""
        return self._recorder is not None

    @property
    def restartable(self) -> bool:
        """Whether the first capture hasn't come to its first cycle, so that it can still begin anew."""
        return self.captures == 0 and self._cycles == 0 and self._phase in (None, Phase.SETTLE, Phase.CALIBRATE)

    @property
    def complete(self) -> bool:
        """Whether something was captured, and everything that was begun was recorded to its end."""
        return self.captures > 0 and not self._cut_short and self.failed is None

    @property
    def recording(self) -> bool:
        """Whether the step that runs now is being recorded."""
        return self._recorder is not None and self._recorder.recording

    def trigger(self) -> None:
        """Ask for one more capture, which begins when the step that runs now has ended; safe on any thread.

        Also after the last one, as long as the session is open.
        """
        self.demand.ask()
        if self.done and self._entered and Session.running is None:
            self.done = False
            self._take_place()

    def step(self) -> None:
        """Say that a step has ended, and with it that the next begins."""
        if self.done or os.getpid() != self._pid:
            return
        self.steps += 1
        if self._phases:
            self._guarded(self._advance)
            if self.done:
                self._leave()
                if self.finished is not None:
                    self.finished()
            return
        if self._wish is not None:
            self._wish.keep()
        if self.demand.due(self.steps):
            self._guarded(self._begin)

    def restart(self) -> bool:
        """Begin again with the first step, if that is possible; True where it was."""
        if self.done or not self.restartable:
            return False
        self.steps = 0
        if self._phases:
            self._guarded(self._begin)
        return True

    def close(self) -> None:
        """End the session now, and write what is recorded of a cycle that is not complete.

        Nothing is raised: what fails is told, and everything is off afterwards.
        """
        if os.getpid() != self._pid:
            return
        if self._phases:
            self._guarded(self._cut)
        self.done, self._entered = True, False
        self._leave()

    def metadata(self, taken: dict[str, Any]) -> dict[str, Any]:
        """What is stored in the trace under the key "syncscan".

        Args:
            taken: what the recorder saw of the cycle.
        """
        times = self._times
        return {
            "schema": SCHEMA,
            "syncscan": importlib.import_module("syncscan").__version__,
            "unprofiled_step_us": self.step_us,
            "unprofiled_quartiles_us": times.quartiles if times else None,
            "unprofiled_mean_us": times.mean if times else None,
            "unprofiled_steps_us": [round(us, 3) for us in times.each] if times else [],
            "unprofiled_clock": times.clock if times else None,
            "unprofiled_undisturbed": self._undisturbed if times else None,
            "calibrated_steps": self.plan.calibrate if times else 0,
            "device_drained": True,
            "first_step": self._first,
            **taken,
            **({"clocks": self._clocks} if self._clocks else {}),
        }

    # What follows runs inside `_guarded`, or on the way out.

    @property
    def _phase(self) -> Phase | None:
        return self._phases[0][0] if self._phases else None

    def _guarded(self, action: Callable[[], None]) -> None:
        """Run a part of a capture so that none of its failures reaches the loop, and no signal comes in between."""
        ending = self._ending
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
        if ending is not None:
            ending.resume()

    def _begin(self) -> None:
        """Begin a capture, or begin it anew."""
        self._phases = self.plan.phases()
        self._began, self._cycles, self._paths_before = self.steps, 0, len(self.paths)
        self._times, self.step_us, self._clocks = None, None, {}
        if self._ending is None and can_handle():
            self._ending = Ending(self._end_by)
        self._enter_phase()

    def _advance(self) -> None:
        """A step of a capture has ended."""
        self._left -= 1
        if self._phase is Phase.CALIBRATE and self._calibration is not None:
            self._calibration.mark()
        if self._left:
            if self._recorder is not None:
                self._recorder.step()
            return
        ended, _ = self._phases.pop(0)
        if ended is Phase.CALIBRATE:
            self._calibrated()
        elif ended is Phase.ACTIVE:
            self._save(cut=False)
        if self._phases:
            self._enter_phase()
        else:
            self.captures += 1
            self._idle()

    def _enter_phase(self) -> None:
        if self._recorder is None and self._phase in (Phase.WARMUP, Phase.ACTIVE) and recorder.profiling():
            self._say(OTHER_PROFILER)
            self._phases.insert(0, (Phase.WAIT, 1))
        phase, self._left = self._phases[0]
        if phase is Phase.ACTIVE:
            self._first = self.steps
        if phase is Phase.CALIBRATE:
            self._undisturbed = not cupti.stays_attached and not recorder.profiling()
            self._calibration = Calibration(self._left)
        elif self._recorder is not None:
            self._recorder.step()
        elif phase in (Phase.WARMUP, Phase.ACTIVE):
            self._record()

    def _calibrated(self) -> None:
        if self._calibration is None:
            return
        self._times, self._calibration = self._calibration.end(), None
        self.step_us = self._times.typical
        self._sample("calibrated")
        advice = self._times.advice()
        if advice is not None:
            self._say(advice)

    def _record(self) -> None:
        plan = self.plan
        warmup = plan.warmup if self._phase is Phase.WARMUP else 0
        cycle = Cycle(self._cycles * plan.cycle + plan.wait, warmup, plan.active, self.stacks, self.shapes)
        self._recorder = Recorder(cycle, self._give_way)
        self._recorder.start()

    def _save(self, *, cut: bool) -> None:
        """Write the cycle that has ended, or as much as there is of it."""
        made, self._recorder = self._recorder, None
        if made is None:
            return
        recorded = made.recording
        self._sample("recorded")
        profiler, taken = made.finish(cut=cut)
        if made.cupti.kept is not None:
            self._say(
                f"CUPTI stays attached to this process ({made.cupti.kept}): until it ends, its steps take 5 to 25 %"
                " longer than before, and so do those that a later capture times."
            )
            taken["remains"] = [f"CUPTI: {made.cupti.kept}"]
        if not recorded:
            return
        path = write.write_trace(profiler, self.out, self.name, self.metadata(taken))
        self.paths.append(path)
        self._cycles += not cut
        self._cut_short = cut
        if self.wrote is not None:
            self.wrote(path)

    def _cut(self) -> None:
        """End a capture before its time, and write what there is."""
        self._save(cut=True)
        self._idle()

    def _idle(self) -> None:
        """No capture is under way."""
        self._phases, self._calibration = [], None
        self._signals_back()
        self.done = not self.demand.pending

    def _abandon(self) -> None:
        """Switch everything off, and forget what was being recorded."""
        made, self._recorder = self._recorder, None
        try:
            if made is not None:
                made.close()
        finally:
            lines.end()
            self._idle()

    def fail(self, reason: str) -> None:
        """Say why there is no capture; the loop goes on without."""
        self.failed = reason
        self.done = not self.demand.standing
        self._say(f"The capture failed and has ended, the program goes on: {reason}")

    def _fail(self, error: Exception) -> None:
        self.fail(str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}")
        try:
            self._abandon()
        except Exception as another:
            self._say(f"It could not be switched off entirely: {another}")

    def _give_way(self) -> None:
        """The program starts a profiler of its own, from within a step."""
        if self._busy or self._recorder is None:
            return
        self._say("The program starts a profiler of its own: the capture gives way, and keeps what it has.")
        self._guarded(self._cut)

    def _end_by(self, signal_name: str) -> bool:
        """The process is about to die of a signal; False where the capture can't be ended now."""
        if self._busy:
            return False
        step = self.steps - self._began + bool(self._phases)
        if self._phases:
            self._guarded(self._cut)
        written = self.paths[self._paths_before :]
        kept = f"kept {written[-1]}" if written else "nothing was recorded yet"
        self._say(f"{signal_name} in step {step} of {self.plan.steps} of a capture: {kept}.")
        return True

    def _take_place(self) -> None:
        Session.running, self._open = self, True
        self._stay_here = fork.in_child(self._forked)

    def _leave(self) -> None:
        """Let go of everything that the session holds beside a capture."""
        self._open = False
        if Session.running is self:
            Session.running = None
        self._signals_back()
        if self._wish is not None:
            self._wish.leave()
            self._wish = None
        self._stay_here()

    def _signals_back(self) -> None:
        ending, self._ending = self._ending, None
        if ending is not None:
            ending.leave()

    def _listen(self, number: int) -> None:
        if can_handle():
            self._wish = Wish(number, self.demand.ask)
        else:
            self._say("Only the main thread can listen to signals; this session was opened on another.")

    def _forked(self) -> None:
        """In a forked child: the session is the parent's."""
        self.done, self._open = True, False
        Session.running = None

    def _sample(self, when: str) -> None:
        clocks = device.clocks()
        if clocks is not None:
            self._clocks[when] = clocks

    def _say(self, sentence: str) -> None:
        """Tell the user, once."""
        if sentence not in self._told:
            self._told.add(sentence)
            with contextlib.suppress(Exception):  # a closed stderr, or warnings that are errors
                self._tell(sentence)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)
