"""Run the phases of one capture, and write a trace file for each of its cycles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from syncscan.capture import cycle_recorder, device, sync_lines, trace_file
from syncscan.capture.cycle_recorder import CycleRecorder
from syncscan.capture.device import StepTimer
from syncscan.capture.plan import Plan, StepPurpose
from syncscan.capture.program_name import program_words
from syncscan.capture.run_watch import RunWatch
from syncscan.capture.sampling import Sampling
from syncscan.capture.stack_timer import NotSampled, Row
from syncscan.model.step_times import StepTimes
from syncscan.version import __version__

SCHEMA = "syncscan.capture/1"

UNSAMPLED = "The host wasn't sampled: {}"
UNEVEN, LOOK = 0.15, 14
"""Spread of the timed steps' middle half, as a fraction of a step, from which this many more steps are left alone
before the first cycle, so that a period of up to eight shows."""
OTHER_PROFILER = "The program runs its own profiler, and torch allows only one at a time: the capture waits for it."


class CaptureRun:
    """One capture. Whatever error it raises, `abandon` switches everything off.

    Traces go to the folder `out`, with `name` before their numbers; `paths` holds those so far, `times` the steps'
    times once they were measured; `began` is how many steps of the loop had ended when it began. `wrote` is called with
    each trace, and whether it holds a part of a cycle alone; `give_way` when the program starts a profiler of its own
    in a cycle; `grows` says that something may be added to its traces later on.
    """

    def __init__(
        self,
        plan: Plan,
        out: Path,
        name: str,
        began: int,
        say: Callable[[str], None],
        wrote: Callable[[Path, bool], None],
        give_way: Callable[[], None],
        grows: bool = False,
    ) -> None:
        self.began, self.ended = began, 0
        self.paths: list[Path] = []
        self.times: StepTimes | None = None
        self._say, self._wrote, self._give_way = say, wrote, give_way
        self._grows = grows or plan.sample > 0
        self._plan, self._out, self._name = plan, out, name
        self._phases = plan.phases()
        self._left = 0
        self._first = began
        self._cycles = 0
        self._calibration: StepTimer | None = None
        self._recorder: CycleRecorder | None = None
        self._sampling: Sampling | None = None
        self._watch = RunWatch(sampled=plan.sample > 0)
        self._looked = False
        self._traces: list[tuple[Path, dict[str, Any]]] = []
        self._clocks: dict[str, Any] = {}
        self._notes: list[str] = []
        self._program = program_words()

    @property
    def over(self) -> bool:
        return not self._phases

    @property
    def profiling(self) -> bool:
        """Return whether the profiler is on, in a warm-up or a recorded step."""
        return self._recorder is not None

    @property
    def unprofiled(self) -> bool:
        """Return whether it hasn't reached its first cycle."""
        return (
            self._cycles == 0
            and not self.over
            and self._phases[0][0] in (StepPurpose.SETTLE, StepPurpose.CALIBRATE, StepPurpose.LOOK)
        )

    def start(self) -> None:
        self._enter()
        self._watch.start()

    def step(self) -> None:
        self._watch.mark()
        self.ended += 1
        self._advance()
        self._watch.resume()
        if self.over:
            self._watch.close()

    def _advance(self) -> None:
        if self._sampling is not None and self._sampling.step():
            return
        self._left -= 1
        if self._calibration is not None:
            self._calibration.mark()
        if self._left:
            if self._recorder is not None:
                self._recorder.step()
            return
        phase, _ = self._phases.pop(0)
        if phase is StepPurpose.CALIBRATE:
            self._calibrated()
        elif phase is StepPurpose.ACTIVE:
            self.save(cut=False)
        elif phase is StepPurpose.SAMPLE:
            self._add_samples()
        if phase in (StepPurpose.CALIBRATE, StepPurpose.LOOK):
            self._set_period()
        if self._phases:
            self._enter()

    def cut(self) -> None:
        """End early, and write what there is; the capture is over anyway if all cycles are recorded."""
        if self._sampling is not None:
            self._phases.clear()
            self._add_samples()
        else:
            self.save(cut=True)
            self._watch.close()

    def save(self, *, cut: bool) -> None:
        """End the cycle, if one is active, and write it as far as it was recorded."""
        recording = self._recorder
        if recording is None:
            return
        recorded = recording.recording
        self._look("recorded")
        profiler, taken = recording.finish(cut=cut)
        self._recorder = None  # only now: `abandon` switches off what `finish` couldn't
        self._watch.end_disturbance()
        if recording.cupti.attached_because is not None:
            self._note(
                f"CUPTI stays attached to the captured process ({recording.cupti.attached_because}): until it ends, "
                "steps take 5 to 25 % longer, including those that a later capture times."
            )
        if not recorded:
            return
        metadata = self.metadata(taken)
        path = trace_file.write_trace(profiler, self._out, self._name, metadata)
        self.paths.append(path)
        if self._grows:
            self._traces.append((path, metadata))
        self._cycles += not cut
        self._wrote(path, cut)

    def abandon(self) -> None:
        """Switch everything off, and discard the current recording."""
        recording, self._recorder = self._recorder, None
        sampling, self._sampling = self._sampling, None
        self._calibration = None
        with ExitStack() as off:  # all of it, though one fails
            off.callback(sync_lines.end)
            off.callback(self._watch.close)
            if recording is not None:
                off.callback(recording.close)
            if sampling is not None:
                off.callback(sampling.close)

    def metadata(self, taken: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata stored in the trace under the key "syncscan"."""
        return {
            "schema": SCHEMA,
            "syncscan": __version__,
            "unprofiled_step_us": None,
            "calibrated_steps": 0,
            **self._timed(),
            "first_step": self._first,
            "program": self._program,
            "notes": list(self._notes),
            **taken,
            "run": self._watch.record(),
            **({"clocks": dict(self._clocks)} if self._clocks else {}),
        }

    def _timed(self) -> dict[str, Any]:
        """Return the metadata on the timed steps; empty where none were."""
        times = self.times
        if times is None:
            return {}
        return {
            "unprofiled_step_us": times.typical,
            "unprofiled_mean_us": times.mean,
            "unprofiled_steps_us": [round(us, 3) for us in times.each],
            "unprofiled_period": times.period,
            "calibrated_steps": self._plan.calibrate,
        }

    def _enter(self) -> None:
        if (
            self._recorder is None
            and self._phases[0][0] in (StepPurpose.WARMUP, StepPurpose.ACTIVE)
            and cycle_recorder.profiling()
        ):
            self._say(OTHER_PROFILER)
            self._phases.insert(0, (StepPurpose.WAIT, 1))
        phase, self._left = self._phases[0]
        if phase is StepPurpose.ACTIVE:
            self._first = self.began + self.ended
        if phase is StepPurpose.CALIBRATE:
            self._calibration = StepTimer(self._left)
        elif phase is StepPurpose.SAMPLE:
            self._start_sampling()
        elif self._recorder is not None:
            self._recorder.step()
        elif phase in (StepPurpose.WARMUP, StepPurpose.ACTIVE):
            self._record(self._left if phase is StepPurpose.WARMUP else 0)

    def _calibrated(self) -> None:
        if self._calibration is None:
            return
        self.times, self._calibration = self._calibration.end(), None
        self._look("calibrated")
        advice = self.times.advice() if device.used() else None  # on a CPU no gain is scaled by it
        if advice is not None:
            self._notes.append(advice)  # the report says it where a gain isn't sure, with the command

    def _note(self, sentence: str) -> None:
        """Tell the user, and readers of this trace and later ones."""
        if sentence not in self._notes:
            self._notes.append(sentence)
        self._say(sentence)

    def _record(self, warmup: int) -> None:
        plan = self._plan
        self._watch.rest()
        self._watch.disturb("profiler")
        first = self._cycles * plan.cycle + plan.wait
        self._recorder = CycleRecorder(plan, first, warmup, self._give_way)
        self._recorder.start()

    def _start_sampling(self) -> None:
        """Start sampling; if that isn't possible, the capture is over."""
        try:
            if cycle_recorder.profiling():
                raise NotSampled("the program runs its own profiler.")
            self._watch.rest()
            self._sampling = Sampling(self._plan.sample, self._watch.sample_ns())
        except NotSampled as reason:
            self._phases.clear()
            self._say(UNSAMPLED.format(reason))

    def _add_samples(self) -> None:
        sampling, self._sampling = self._sampling, None
        if sampling is None:
            return
        self._watch.disturb("counting")
        more: dict[str, Any] = {}
        try:
            more["host"] = sampling.finish(lambda rows: self._between_steps(sampling, rows))
        except NotSampled as reason:
            self._say(UNSAMPLED.format(reason))
        more["run"] = self._watch.record()
        self.add(more)

    def _between_steps(self, sampling: Sampling, rows: Sequence[Row]) -> set[int]:
        """Return when samples of phases between the steps were taken; the watch gets all samples."""
        self._watch.add(rows, sampling.period_ns, sampling.spent)
        return {sample.at for phase in self._watch.seen()[0] for sample in phase.samples}

    def add(self, more: dict[str, Any], failed: str = UNSAMPLED) -> None:
        """Add to the metadata of this capture's traces.

        Where that fails, `failed` is said, a sentence with a placeholder for the reason.
        """
        try:
            for number, (path, metadata) in enumerate(self._traces):
                trace_file.write_metadata(path, metadata, {**metadata, **more})
                self._traces[number] = path, {**metadata, **more}
        except OSError as error:
            self._say(failed.format(f"it can't be added to the trace ({error.strerror or error})."))

    def _set_period(self) -> None:
        """Let cycles hold whole periods, where steps differ periodically; observe more steps where that is unclear."""
        if not self._plan.auto:
            return
        period, times = self._watch.period(), self.times
        spread = times.quartiles if times else None
        unclear = period == 1 and times and spread and spread[1] - spread[0] > UNEVEN * times.typical
        if unclear and not self._looked:
            self._looked = True
            self._phases.insert(0, (StepPurpose.LOOK, LOOK))
        elif period > 1 and self._plan.active % period:
            self._plan = self._plan.of_period(period)
            self._phases = [(p, self._plan.active if p is StepPurpose.ACTIVE else n) for p, n in self._phases]
        if period > 1 and times is not None:
            self.times = replace(times, period=period)

    def _look(self, when: str) -> None:
        """Store the device's clocks."""
        clocks = device.clocks()
        if clocks is not None:
            self._clocks[when] = clocks
