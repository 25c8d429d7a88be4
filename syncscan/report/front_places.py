"""Find the places that a first screen names: of each change, and of the line or op that takes most of the host's time.

A place is a line of the program where one is known; else the phase that holds most of the change's gain, else what the
change is about, with a word that its line wasn't recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from msgspec import Struct

from syncscan.facts.network import passes
from syncscan.facts.period import step_intervals
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Confidence, Finding, Phase, Source
from syncscan.model.habit import Habit
from syncscan.model.host import HostNode, SampledHost
from syncscan.model.libraries import path_in_package
from syncscan.model.slice_names import is_engine
from syncscan.model.trace import Category
from syncscan.report.units import duration
from syncscan.rules.pages import habit_page

LEAST = 0.25
"""Part of the step from which one line, or one op with its backward, is named."""
MOSTLY = 0.8
"""Part of a change's gain that the phases hold which its place names."""
PLACE = 40
"""Characters of a place up to which it says what is there too: with its gain, it is a line of a terminal of 80."""
_NETWORK = {Phase.FORWARD: "forward", Phase.BACKWARD: "backward"}
_NOT_RECORDED, _NO_LINE = "line not recorded", "no line"
_PHASE_OF = {
    "loader-no-workers": Phase.DATA,
    "loader-few-workers": Phase.DATA,
    "optimizer-loop": Phase.OPTIMIZER,
}
"""The phase of the step whose line is a habit's place."""


class Hottest(Struct, frozen=True):
    """The line, or the op with its backward, that takes most of the step's time on the host."""

    place: str
    """`model.py:593`, or the op, with its backward if that counts."""
    op: str
    """The op that runs there, as `8 calls of aten::_cudnn_attention_forward`, or how often the op does; else empty."""
    us: float
    of_us: float
    kind: str
    """`line`, `op` or `call of the OS`."""

    @property
    def share(self) -> float:
        return self.us / self.of_us if self.of_us else 0.0

    @property
    def in_words(self) -> str:
        """It on one line: `train.py:12, 8 calls of aten::mm, 31.0 ms of 46.1 ms`."""
        took = f"{duration(self.us)} of {duration(self.of_us)}"
        return ", ".join(part for part in (self.place, self.op, took) if part)


def place_of_syncs(members: Sequence[Finding]) -> str:
    """Return the first line and how many there are besides: `diffusion.py:870 and 2 more, likely`."""
    first, *others = members
    more = f" and {len(others)} more" if others else ""
    likely = ", likely" if any(f.confidence is not Confidence.HIGH for f in members) else ""
    line = short_line(first)
    subject = _subject(first)
    if not line:
        what = f"{subject}{more}{likely}"
        return f"{what}, {_NOT_RECORDED if len(what) + len(_NOT_RECORDED) < PLACE else _NO_LINE}"
    return f"{line}{more or _about(line, subject)}{likely}"


def _about(line: str, subject: str) -> str:
    return f", {subject}" if subject and len(f"{line}, {subject}") <= PLACE else ""


def _subject(f: Finding) -> str:
    """Return what waits, in a word or two: `.item()` of the title `.item() waits for a number`, else the op."""
    subject, verb, _ = f.title.partition(" waits")
    if verb and len(subject) <= 24:
        return subject
    return (f.op or f.call).removeprefix("aten::").partition(":")[0]


def short_line(f: Finding) -> str:
    """Return a finding's line, of a library with its package: `train.py:12`, `timm/utils/agc.py:30`."""
    if f.in_loop and f.in_library:
        return _line(f.in_library, in_package=True)
    return _line(f.source) or _line(f.in_library, in_package=True)


def _line(source: Source | None, in_package: bool = False) -> str:
    if source is None:
        return ""
    file = path_in_package(source.file) if in_package else _name(source.file)
    if source.exact:
        return f"{file}:{source.line}"
    if source.candidates:
        return f"{file}:{' or '.join(map(str, source.candidates[:2]))}"
    return f"{source.function}() in {file}"


def _name(file: str) -> str:
    return PurePath(file.replace(chr(92), "/")).name


def place_of_habit(analysis: Analysis, habit: Habit) -> str:
    sampled = analysis.host_time.sampled
    if habit.rule == "launch-bound":
        return _network(analysis)
    about = habit_page(habit.rule).subject or habit.title
    line = _line_of_habit(habit, sampled)
    if line:
        return f"{line}{_about(line, about)}"
    if habit.scope:
        return f"{about}, in {habit.scope[-1]}"
    return f"{about}, {_NOT_RECORDED}"


def _line_of_habit(habit: Habit, sampled: SampledHost | None) -> str:
    if habit.sampled and habit.sampled.line:
        return habit.sampled.line
    phase = _PHASE_OF.get(habit.rule)
    if phase is None and habit.sampled and habit.sampled.by_phase:
        phase = habit.sampled.by_phase[0][0]
    return line_of_phase(sampled, phase) if phase and sampled else ""


def _network(analysis: Analysis) -> str:
    """Return the passes of the network that take most of the host's time, at the line that calls them."""
    sampled, took = analysis.host_time.sampled, _passes(analysis)
    by_time = sorted((phase for phase in took if phase in _NETWORK), key=lambda phase: -took[phase])
    if not by_time:
        return "the network"
    if took[by_time[0]] >= MOSTLY * sum(took[phase] for phase in by_time):
        part = f"the network's {_NETWORK[by_time[0]]} pass"
    else:
        part = "the network, forward and backward"
    line = line_of_phase(sampled, by_time[0]) if sampled else ""
    return f"{line}{_about(line, part) or ', the network'}" if line else part


def _passes(analysis: Analysis) -> dict[Phase, float]:
    """Return the host's time in each phase: as sampled, else in the recorded passes of a step."""
    if analysis.host_time.sampled:
        return {Phase(share.name): share.us for share in analysis.host_time.sampled.by_phase()}
    took: dict[Phase, float] = {}
    for step in step_intervals(analysis.trace)[:1]:
        for each in passes(analysis.trace, step):
            phase = Phase.BACKWARD if each.backward else Phase.FORWARD
            took[phase] = took.get(phase, 0.0) + each.interval.length
    return took


def line_of_phase(sampled: SampledHost, phase: Phase) -> str:
    """Return the program's line in which most of a phase's time is spent, where one is in most of it; else nothing."""
    entries: dict[str, float] = {}
    for node in sampled.nodes:
        inside = node.parent >= 0 and sampled.nodes[node.parent].phase is phase
        if node.phase is phase and not inside:
            caller = sampled.in_program(node)
            if caller:
                entries[caller.place] = entries.get(caller.place, 0.0) + node.us
    most = max(entries, key=lambda place: entries[place], default="")
    return most if most and 2 * entries[most] > sum(entries.values()) else ""


def hottest_of(analysis: Analysis, listed: Sequence[Finding]) -> Hottest | None:
    """Return the line or op that takes a quarter of the step on the host or more; None where nothing does.

    What waits for the device there, the loader's lines and autograd's engine don't count: other words say those.
    """
    counted, sampled = analysis.host_time.counted, analysis.host_time.sampled
    op = _hottest_op(analysis)
    line = _hottest_line(sampled, {short_line(f) for f in listed}) if sampled else None
    if line and op and counted:
        calls = f"{op.op} of {op.place}" if op.op else op.place
        return Hottest(line.place, calls, line.us, line.of_us, "line")
    return line or op


def _hottest_line(sampled: SampledHost, waiting: Iterable[str]) -> Hottest | None:
    took: dict[tuple[str, int], float] = {}
    called_by: dict[tuple[str, int], HostNode] = {}
    for node in sampled.nodes:
        if node.phase is Phase.DATA or node.function == "_engine_run_backward" or not node.self_us:
            continue
        key = node.file, node.line
        took[key] = took.get(key, 0.0) + node.self_us
        caller = sampled.in_program(node)
        if caller and key not in called_by:
            called_by[key] = caller
    most = max(took, key=lambda key: took[key], default=None)
    if most is None or took[most] < LEAST * sampled.step_us:
        return None
    file, line = most
    caller = called_by.get(most)
    place = f"{_name(file)}:{line}"
    if place in set(waiting):
        return None
    if caller and (caller.file, caller.line) != most:
        place = f"{place}, under {caller.place}"
    return Hottest(place, "", took[most], sampled.step_us, "line")


_DIRECTION = re.compile(r"_?(forward|backward)\d*$", re.IGNORECASE)


def _hottest_op(analysis: Analysis) -> Hottest | None:
    """Return an op with its backward, which has its name with another ending."""
    counted = analysis.host_time.counted
    if counted is None or not counted.step_us:
        return None
    took: dict[str, float] = {}
    calls: dict[str, float] = {}
    names: dict[str, str] = {}
    for dear in counted.dearest:
        if is_engine(dear.op):
            continue
        key = _DIRECTION.sub("", dear.op)
        took[key] = took.get(key, 0.0) + dear.self_us
        calls[key] = calls.get(key, 0.0) + dear.per_step
        names.setdefault(key, dear.op)
    most = max(took, key=lambda key: took[key], default="")
    if not most or took[most] < LEAST * counted.step_us:
        return None
    both = sum(_DIRECTION.sub("", dear.op) == most for dear in counted.dearest) > 1
    name = f"{names[most]}{' and its backward' if both and names[most] != most else ''}"
    times = f"{calls[most]:,.0f} call{'s' * (round(calls[most]) != 1)}" if calls[most] >= 1 else ""
    is_os_call = names[most] in map(analysis.trace.strings.__getitem__, analysis.trace.names_of(Category.OS_CALL))
    return Hottest(name, times, took[most], counted.step_us, "call of the OS" if is_os_call else "op")


__all__ = ["Hottest", "hottest_of", "line_of_phase", "place_of_habit", "place_of_syncs", "short_line"]
