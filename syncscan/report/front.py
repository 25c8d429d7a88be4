"""Decide an analysis's first screen: the limit, at most three changes, what they gain, how sure that is, what is next.

One value that the terminal, the page, Markdown, notebooks, viewers and agents render. Its numbers are µs and shares
of the step without the profiler; its sentences are made here, once, with names as recorded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from syncscan.model import states
from syncscan.model.analysis import Analysis
from syncscan.model.capture import NO_TABLE
from syncscan.model.finding import Cause, Phase
from syncscan.model.habit import Area, Basis
from syncscan.model.step import Bound
from syncscan.model.view import EVERYTHING, Hidden
from syncscan.report import dry_run, kernels, program_run, timed_steps
from syncscan.report.front_changes import (
    LAUNCHES,
    LEAST_MAY,
    ListedChange,
    changes_of,
    gain_of,
    removed_by,
)
from syncscan.report.front_places import Hottest, hottest_of
from syncscan.report.front_sure import Sure, sureness_of
from syncscan.report.phrases import real, replayed
from syncscan.report.program_run import RunBar, run_bar
from syncscan.report.states import COMPILED
from syncscan.report.units import duration, time_with_range

STEADY, UNSTEADY = 0.1, 0.5
"""Uncertainty of the step's time from which it is said, and from which the step is said to be unsteady."""
LINE = 70
"""Columns that a command takes at most, so that it can be pasted from a terminal of 80."""


class Front(Struct, frozen=True, kw_only=True):
    """An analysis's first screen."""

    name: str
    """The recording's name, with its rank."""
    device: str
    step: str
    """The step in words: `10.6 ms, unsteady`, `103 ms ±24%`; empty where nothing was timed."""
    step_us: float
    """The step without the profiler, where known; all shares are of it."""
    busy: float | None
    """The device's share of it."""
    verdict: str
    """The limit of the step, a sentence."""
    together: str
    """Gain of the changes together, a sentence."""
    changes: tuple[ListedChange, ...]
    gain: float
    """That gain, a share of the step."""
    then: str
    """The limit after the changes, a sentence; empty where the changes leave none to name."""
    most: Hottest | None
    """The line or op that takes a quarter of a host-bound step or more."""
    if_compiled: str
    """The step once compiled, where no change does that; or why nothing is promised of it."""
    run: RunBar | None
    sure: Sure
    why_sure: str
    """The one reason, a sentence."""
    next: tuple[str, ...]
    """The next command, as arguments."""
    races: str
    """How many races there are, a sentence; empty without one."""
    hidden: str
    """How many findings and habits an option hides, a sentence; empty for none."""

    @property
    def advice(self) -> tuple[str, ...]:
        """The changes, the hottest line or op, and the limit after the changes, a sentence each; for single lines."""
        changes = [f"{number}. {change.in_words}" for number, change in enumerate(self.changes, 1)]
        most = [f"Most: {self.most.in_words}."] if self.most else []
        return (*changes, *most, *([f"Then: {self.then}"] if self.then else []))


def front_of(analysis: Analysis, program: Sequence[str] | None = None) -> Front:
    dry = dry_run.is_dry(analysis)
    changes = changes_of(replace(analysis, view=EVERYTHING))
    hottest = (
        None if dry or analysis.step.bound is not Bound.HOST else hottest_of(analysis, removed_by(analysis, changes))
    )
    step = _step(analysis, changes)
    sure, why = sureness_of(analysis, changes, hottest, step)
    return Front(
        name=_name(analysis),
        device=_device(analysis.trace.info.devices),
        step=step,
        step_us=replayed(analysis.step),
        busy=None if dry else _busy(analysis),
        verdict=_verdict(analysis, changes, hottest),
        together=_together(analysis, changes),
        changes=_in_view(analysis, changes),
        gain=gain_of(changes),
        then=_then(analysis, changes),
        most=hottest,
        if_compiled=_if_compiled(analysis, changes),
        run=run_bar(analysis),
        sure=sure,
        why_sure=why,
        next=_next(analysis, changes, sure, program),
        races=_races(analysis),
        hidden=_hidden(analysis.shown.hidden),
    )


def _in_view(analysis: Analysis, changes: tuple[ListedChange, ...]) -> tuple[ListedChange, ...]:
    """Return the changes that the view lists, of which some of all may not be; sentences on the step cover all."""
    shown = {f.id for f in analysis.shown.findings} | {h.id for h in analysis.shown.habits}
    return changes if all(shown & {c.habit, *c.findings} for c in changes) else changes_of(analysis)


# the header


_ENDINGS = re.compile(r"(\.\d{16,})?(\.pt\.trace|\.kept|\.trace)?\.json(\.(gz|xz|bz2|zst))?$|\.syncscan\.json$")
_MEMORY = re.compile(r" \d+ ?GB.*$")


def _name(analysis: Analysis) -> str:
    info = analysis.trace.info
    name = _ENDINGS.sub("", PurePath(info.path).name) or info.path
    return f"{name}, rank {info.rank} of {info.world_size}" if info.world_size and info.world_size > 1 else name


def _device(names: Sequence[str]) -> str:
    if not names:
        return ""
    name = _MEMORY.sub("", names[0])
    if not name:
        return f"{len(names)} device{'s' * (len(names) != 1)}"
    return name if len(names) == 1 else f"{len(names)} × {name}"


def _step(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    us, sureness = replayed(analysis.step), timed_steps.uncertainty(analysis)
    if not us or dry_run.is_dry(analysis):
        return ""
    if analysis.step.unprofiled_us is None:
        return f"{duration(us)} with the profiler"
    mean = 0.0 if changes else timed_steps.mean_us(analysis)  # changes begin at the step that was timed
    if sureness > timed_steps.UNSTEADY and mean:
        return f"unsteady, {_mean(analysis)} {duration(mean, 2)}"
    if sureness >= UNSTEADY:
        return f"{duration(us)}, unsteady"
    return f"{duration(us)} ±{sureness:.0%}" if sureness >= STEADY else duration(us)


def _mean(analysis: Analysis) -> str:
    return "the run's mean" if analysis.run and analysis.run.mean_us else "on average"


def _busy(analysis: Analysis) -> float | None:
    step = analysis.step
    if not len(analysis.trace.device_rows) or not step.observed_us:
        return None
    return min(1.0, step.device_share if step.device_share is not None else step.recorded_device_share)


# sentences


_AWAITED = {
    Cause.READBACK: "a number",
    Cause.SHAPE: "a size",
    Cause.PAGEABLE: "a copy",
    Cause.CHECK: "a check",
    Cause.LOG: "a value to log",
    Cause.CTRL: "a condition",
    Cause.EXPLICIT: "all of the device's work",
    Cause.ALLOC: "memory",
    Cause.DIST: "other ranks",
    Cause.INIT: "one-off work",
    Cause.DEBUG: "each launch",
    Cause.UNKNOWN: "the device",
}
_NUMBERS = {1: "One change", 2: "Two changes", 3: "Three changes"}
_SLIGHT = 0.5
"""Idle time after syncs, as a part of what they cost, below which they cost by late launches."""


def _verdict(analysis: Analysis, changes: Sequence[ListedChange], hottest: Hottest | None) -> str:
    if dry_run.is_dry(analysis):
        return f"{dry_run.verdict(analysis)}."
    step, bound = analysis.step, analysis.step.bound
    if not len(analysis.trace.device_rows):
        return "The trace has no device work."
    if bound is Bound.DEVICE:
        return f"The device is the limit: it is busy {_busy(analysis) or 0.0:.0%} of the step."
    if bound is Bound.INPUT:
        waits = input_share(analysis)
        of = f" {waits:.0%} of its time" if waits else ""
        return f"The input is the limit: the host waits for the DataLoader{of}."
    if bound is Bound.COMMUNICATION:
        share = f"{step.communication_share or 0.0:.0%}"
        return f"Communication is the limit: {share} of the step is collectives with nothing computed beside them."
    if bound is Bound.SYNC:
        return _of_syncs(analysis, changes)
    if bound is Bound.HOST:
        return _of_host(analysis, changes, hottest)
    reason = step.reason.partition(". ")[0].removesuffix(".").removesuffix(", so its bound can't be determined")
    return f"The limit is unknown: {reason[:1].lower()}{reason[1:]}." if reason else "The limit is unknown."


def input_share(analysis: Analysis) -> float:
    """Return the part of its time that the host waits for input: as sampled without the profiler, else as recorded."""
    sampled = analysis.host_time.sampled
    if sampled and sampled.step_us:
        return sum(part.us for part in sampled.by_phase() if part.name == Phase.DATA.value) / sampled.step_us
    return analysis.step.input_share or 0.0


def _of_syncs(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    first = changes[0] if changes and changes[0].findings else None
    members = removed_by(analysis, [first]) if first else real(analysis.findings)
    causes = {f.cause for f in members}
    places = len(real(analysis.findings))
    waits = f"waits for {_AWAITED[causes.pop()]}" if len(causes) == 1 else "waits"
    several = f" in {places} places" if places > 1 else ""
    if changes and first is None and changes[0].gain is not None:
        return f"Syncs may be the limit, or {_other_limit(analysis, changes[0])}."
    if not changes or first is None or first.may:
        return f"Syncs may be the limit: the host {waits}{several}."
    if analysis.step.bubble_us < _SLIGHT * (first.before_us - first.after_us):
        return f"Syncs are the limit: the host {waits}{several}, then launches too late."
    return f"Syncs are the limit: the device idles because the host {waits}{several}."


def _other_limit(analysis: Analysis, first: ListedChange) -> str:
    """Return what else limits a step in which no sync surely costs anything: what its first change is about."""
    area = next(h.area for h in analysis.habits if h.id == first.habit)
    if area is Area.INPUT:
        return "the input: the host waits for the DataLoader"
    if area is Area.HOST or first.rule == LAUNCHES:
        return "the host: the device waits for launches"
    return f"the device: it is busy {_busy(analysis) or 0.0:.0%} of the step"


def _of_host(analysis: Analysis, changes: Sequence[ListedChange], hottest: Hottest | None) -> str:
    if hottest:
        return f"The host is the limit: one {hottest.kind} takes {hottest.share:.0%} of the step."
    areas = {h.id: h.area for h in analysis.habits}
    loads = any(areas.get(change.habit) is Area.INPUT for change in changes)
    return f"The host is the limit: the device waits for launches{', the host for input' if loads else ''}."


def _together(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    if dry_run.is_dry(analysis):
        if dry_run.ran_nothing(analysis):
            return "It put nothing on a GPU: give it the arguments with which it does."
        steps = len(analysis.trace.steps)
        return f"Nothing was timed in {steps} step{'s' * (steps != 1)}; for costs record it on a GPU."
    if not len(analysis.trace.device_rows):
        captured = analysis.trace.info.capture is not NO_TABLE
        return "Record it on a machine with a GPU." if captured else "Record the program with `syncscan profile`."
    if changes and changes[0].gain is None:
        return "What removing its syncs gains can't be projected."
    if not changes:
        return _nothing(analysis)
    count = _NUMBERS[len(changes)]
    if changes[0].may or timed_steps.uncertainty(analysis) >= 1.0:
        after, base = changes[-1], changes[0].before_us
        low, high = (100 * max(0.0, 1 - us / base) for us in (after.after_high_us, after.after_low_us))
        return f"{count} may make the step {low:.0f} to {high:.0f}% shorter."
    gain = gain_of(changes)
    makes = "makes" if len(changes) == 1 else "make"
    share = analysis.run.steps_share if analysis.run else None
    if share is None:
        return f"{count} {makes} the step {gain:.0%} shorter."
    if share >= 1 - program_run.WORTH:
        return f"{count} {makes} the step, and the run, {gain:.0%} shorter."
    return f"{count} {makes} the step {gain:.0%} shorter, and the run {share * gain:.0%}."


def _nothing(analysis: Analysis) -> str:
    waits = real(analysis.findings)
    if analysis.step.recoverable_us is None:
        return "No gain can be projected." if waits else "No sync was found."
    if not waits:
        return "No sync was found."
    if analysis.step.bound is Bound.DEVICE:
        every = {1: "its one wait", 2: "both waits"}.get(len(waits), f"all {len(waits)} waits")
        return f"Removing {every} gains nothing."
    return "Removing syncs gains nothing."


def _then(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    """Return the limit once the syncs are gone, if they are all that is listed; without a change, the kernels."""
    outlook = analysis.step.outlook
    if not changes and kernels.leads(analysis):
        most = kernels.most(analysis)
        return f"{most}; -v names them." if most else ""
    of_syncs = all(c.findings and c.gain is not None and not _launches(analysis, c) for c in changes)
    if outlook is None or not changes or not of_syncs or outlook.after is analysis.step.bound:
        return ""
    if outlook.after is Bound.DEVICE:
        return f"The device is the limit: busy {outlook.device_share:.0%}."
    return "The host is the limit: reduce launches." if outlook.after is Bound.HOST else ""


def _if_compiled(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    """Return what compiling comes to, or why nothing is promised of it, unless a change does it."""
    if any(change.habit.startswith(LAUNCHES) or _launches(analysis, change) for change in changes):
        return ""
    obstacles = states.in_words(states.standing(analysis.obstacles, removed=True))
    bounds = any(r.basis is Basis.UPPER_BOUND and r.habit.startswith(LAUNCHES) for r in analysis.remedies)
    if obstacles:
        first = obstacles.partition("; ")[0].removesuffix(".")
        return f"compiled: no gain is promised; {first[:1].lower()}{first[1:]}"
    if bounds or analysis.states is None:
        return ""
    base, after = analysis.states.baseline_us, replayed(analysis.step) * (1 - gain_of(changes))
    each = [s for s in analysis.states.each if s.launches != states.EAGER and s.range_us[1] <= after - LEAST_MAY * base]
    best = min(each, key=lambda s: s.us, default=None)
    if best is None:
        return ""
    also = " and without its syncs" if best.removed else ""
    return f"{COMPILED[best.launches]}{also}: {time_with_range(best.us, best.range_us, base)}, projected, not proven"


def _launches(analysis: Analysis, change: ListedChange) -> bool:
    return change.remedy is not None and bool(analysis.remedies[change.remedy].launches)


def _races(analysis: Analysis) -> str:
    count = len(analysis.races)
    return f"{count} race{'s' * (count != 1)}: results may be wrong, by timing." if count else ""


def _hidden(hidden: Sequence[Hidden]) -> str:
    """Return what is hidden, e.g. `12 findings and 1 habit are hidden by --select, 3 findings by --min-saves`."""
    if not hidden:
        return ""
    (first, *more) = [(_count_text(h), h.by) for h in hidden]
    verb = "is" if hidden[0].findings + hidden[0].habits == 1 else "are"
    listed = [f"{first[0]} {verb} hidden by {first[1]}", *(f"{count} by {option}" for count, option in more)]
    return f"{', '.join(listed)}."


def _count_text(hidden: Hidden) -> str:
    parts = [(hidden.findings, "finding"), (hidden.habits, "habit")]
    return " and ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in parts if count)


# the next command


_EXAMPLE = ("SCRIPT",)
"""The program in commands for a reader whose program isn't known."""


def _recorded_program(analysis: Analysis) -> tuple[str, ...]:
    """Return the script that a trace says was captured, with its arguments.

    Anyone may have written the trace, and a command is there to be pasted: it names a script, never another program.
    """
    words = analysis.trace.info.capture.program
    return words if words and words[0].endswith(".py") and not words[0].startswith("-") else _EXAMPLE


def _next(
    analysis: Analysis, changes: Sequence[ListedChange], sure: Sure, program: Sequence[str] | None
) -> tuple[str, ...]:
    """Return how to record again where a gain isn't sure, else what explains the first change, or shows all."""
    trace, dry = analysis.trace.info.path, dry_run.is_dry(analysis)
    command_of = tuple(program or _recorded_program(analysis))
    if dry and changes and program:
        return _fitting(("syncscan", "fix", *program), changes)
    if dry and dry_run.ran_nothing(analysis):
        return ("syncscan", "dryrun", *_EXAMPLE, "ARGUMENTS")
    if dry and not changes:
        runs_function = program and ".py:" in program[0]  # which only a dry run and `fix` call
        return _fitting(("syncscan", "profile", *(_EXAMPLE if runs_function else command_of)), changes)
    if not dry and not len(analysis.trace.device_rows):
        captured = analysis.trace.info.capture is not NO_TABLE  # on a machine without a GPU
        return _fitting(("syncscan", "dryrun" if captured else "profile", *command_of), changes)
    if not dry and (sure == "no" or timed_steps.uncertainty(analysis) >= UNSTEADY):
        return _fitting(("syncscan", "profile", "--calibrate", str(timed_steps.enough(analysis)), *command_of), changes)
    if changes or trace == "-":
        return "syncscan", "explain", *([changes[0].rule] if changes else [])
    return _fitting(("syncscan", "report", trace, "-o", "report.html"), changes)


def _fitting(command: tuple[str, ...], changes: Sequence[ListedChange]) -> tuple[str, ...]:
    """Return a command that fits on a line: with a program of the reader's own, or another one where it doesn't."""
    if len(" ".join(command)) <= LINE:
        return command
    if command[1] == "report":
        return _fitting(("syncscan", "open", command[2]), changes)
    if command[1] == "open":
        return ("syncscan", "explain")
    return (*command[:2], *(("--calibrate", command[3]) if "--calibrate" in command else ()), *_EXAMPLE)
