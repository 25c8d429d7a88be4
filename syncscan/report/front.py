"""Decide an analysis's first screen: the limit, at most three changes, what they gain, how sure that is, what is next.

One value that the terminal, the page, Markdown, notebooks, viewers and agents render. Its numbers are µs and shares
of the step without the profiler; its sentences are made here, once, with names as recorded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from syncscan.model import states
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Cause, Finding
from syncscan.model.habit import Area, Basis, Change
from syncscan.model.remedy import Remedy
from syncscan.model.step import Bound, ShareBasis
from syncscan.model.view import Hidden
from syncscan.report import dry_run, program_run, remedies, timed_steps
from syncscan.report.front_places import Hottest, hottest_of, place_of_habit, place_of_syncs, short_line
from syncscan.report.phrases import real, replayed
from syncscan.report.states import COMPILED
from syncscan.report.units import duration

MOST = 3
"""Changes that a first screen lists."""
TRIED = 6
"""Changes of which it is tried what they add to those above."""
LEAST, LEAST_MAY = 0.01, 0.02
"""Part of the step that a change adds at least, and its range's lower end; and that the best one adds at least where no
range's lower end is that high."""
STEADY, ROUGH, UNSTEADY = 0.1, 0.25, 0.5
"""Uncertainty of the step's time from which it is said, leaves no gain sure, and is said to be unsteady."""
LINE = 70
"""Columns that a command takes at most, so that it can be pasted from a terminal of 80."""

Sure = Literal["yes", "partly", "no"]


class ListedChange(Struct, frozen=True, kw_only=True):
    """A change, and the step's state after it and those above it; times in µs, gains as shares of the step."""

    gain: float | None
    """Part of the step that it adds to the rows above; None where nothing was projected, as after a dry run."""
    gain_low: float = 0.0
    gain_high: float = 0.0
    may: bool = False
    """Whether the step may gain nothing by it."""
    at_most: bool = False
    """Whether the gain is only an upper bound."""
    before_us: float = 0.0
    after_us: float = 0.0
    after_low_us: float = 0.0
    after_high_us: float = 0.0
    amount: str
    """The gain in words: `27%`, `may 9%`; what it costs where nothing was projected: `14 times per step`."""
    becomes: str = ""
    """The step before and after with its range: `16.0 → 11.7 ms (10.6 to 12.8)`, for a later row `→ 6.0 ms (…)`."""
    place: str
    do: str
    """Advice, an imperative of one line."""
    below: str = ""
    """Gain of either part of it alone; empty where that adds nothing."""
    rule: str
    findings: tuple[str, ...] = ()
    """Ids of the syncs that it removes; empty for a habit."""
    habit: str = ""
    """The habit's id; empty for syncs."""
    remedy: int | None = None
    """Index in the analysis's list of remedies; None where nothing was projected."""

    @property
    def in_words(self) -> str:
        """The change on one line: `27%, 16.0 → 11.7 ms (11.1 to 12.8), train.py:47, .item(): Keep it …`."""
        return f"{', '.join(part for part in (self.amount, self.becomes, self.place) if part)}: {self.do}"


class RunPart(Struct, frozen=True):
    """A part of the run: the steps, or a phase between them."""

    name: str
    share: float


class RunBar(Struct, frozen=True):
    """The run as one bar of shares, and what they are in a sentence; without parts where nothing was timed."""

    parts: tuple[RunPart, ...]
    sentence: str


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
    changes = _unprojected(analysis) if _is_unprojected(analysis) else _Changes(analysis).listed
    hottest = (
        None if dry or analysis.step.bound is not Bound.HOST else hottest_of(analysis, _removed(analysis, changes))
    )
    sure, why = _sureness(analysis, changes, hottest)
    return Front(
        name=_name(analysis),
        device=_device(analysis.trace.info.devices),
        step=_step(analysis),
        step_us=replayed(analysis.step),
        busy=None if dry else _busy(analysis),
        verdict=_verdict(analysis, changes, hottest),
        together=_together(analysis, changes),
        changes=changes,
        gain=_gain(changes),
        then=_then(analysis, changes),
        most=hottest,
        if_compiled=_if_compiled(analysis, changes),
        run=_run(analysis),
        sure=sure,
        why_sure=why,
        next=_next(analysis, changes, sure, program),
        races=_races(analysis),
        hidden=_hidden(analysis.shown.hidden),
    )


# the header


_ENDINGS = re.compile(r"(\.pt\.trace|\.kept|\.trace)?\.json(\.(gz|xz|bz2|zst))?$|\.syncscan\.json$")
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


def _step(analysis: Analysis) -> str:
    us, sureness = replayed(analysis.step), timed_steps.uncertainty(analysis)
    if not us or dry_run.is_dry(analysis):
        return ""
    if analysis.step.unprofiled_us is None:
        return f"{duration(us)} with the profiler"
    mean = timed_steps.mean_us(analysis)
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


# the changes


class _Changes:
    """The changes that are listed: each adds to those above it, and is a state of the step that was projected."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.base = replayed(analysis.step)
        self.habits = {h.id: h for h in analysis.habits}
        self.findings = {f.id: f for f in analysis.findings}
        now = analysis.projector.state((), ()) if analysis.projector else None
        self.shift = self.base - now.us if now else 0.0
        self.listed = tuple(self._listed())

    def _listed(self) -> list[ListedChange]:
        candidates = sorted(self._candidates(), key=lambda r: (not self._named(r), -r.alone_us))
        chosen: list[Remedy] = []
        rows: list[ListedChange] = []
        for remedy in candidates[:TRIED]:
            if len(rows) == MOST:
                break
            if any(self._contains(other, remedy) for other in chosen):
                continue
            row = self._row(chosen, remedy, rows)
            if row.gain is not None and row.gain >= LEAST and row.gain_low >= LEAST:
                chosen.append(remedy)
                rows.append(row)
        return rows or self._best(candidates)

    def _candidates(self) -> list[Remedy]:
        """Return the remedies of what the view shows, but for upper bounds."""
        shown = self.analysis.shown
        listed = {f.id for f in shown.findings} | {h.id for h in shown.habits}
        return [
            r
            for r in self.analysis.remedies
            if (r.habit in listed or listed.intersection(r.findings)) and r.basis is not Basis.UPPER_BOUND
        ]

    def _best(self, candidates: Sequence[Remedy]) -> list[ListedChange]:
        """Return the change that may gain most, where none surely does; an upper bound where nothing is projected."""
        rows = [self._row([], remedy, []) for remedy in candidates]
        likely = [row for row in rows if row.gain is not None and row.gain >= LEAST_MAY]
        return [replace(row, may=True, amount=f"may {row.amount}") for row in likely[:1]]

    def _named(self, remedy: Remedy) -> bool:
        """Return whether a change is about what the verdict names."""
        bound, habit = self.analysis.step.bound, self.habits.get(remedy.habit)
        if habit is None:
            return bound is Bound.SYNC or (bound is Bound.HOST and bool(remedy.launches))
        if bound is Bound.INPUT:
            return habit.advice.area is Area.INPUT
        return bound in (Bound.HOST, Bound.DEVICE) and habit.advice.area in _AREAS[bound]

    def _contains(self, other: Remedy, remedy: Remedy) -> bool:
        """Return whether a change that is listed already does all that this one does."""
        if other.findings and remedy.findings:
            return set(remedy.findings) <= set(other.findings)
        compiles = [bool(r.launches) or r.habit.startswith(_LAUNCHES) for r in (other, remedy)]
        return all(compiles)

    def _row(self, above: Sequence[Remedy], remedy: Remedy, rows: Sequence[ListedChange]) -> ListedChange:
        habit = self.habits.get(remedy.habit)
        members = [self.findings[id] for id in remedy.findings]
        before = rows[-1].after_us if rows else self.base
        us, (low, high) = self._state(above, remedy, rows)
        gain = max(0.0, before - us)
        parts = [limit / remedy.alone_us if remedy.alone_us else 0.0 for limit in remedy.range_us]
        advice = habit.advice.do if habit else members[0].do
        if remedy.launches:
            compiled = f'torch.compile(model, mode="{remedy.launches}").'
            advice = f"{advice.removesuffix('.')}; {compiled}"
            if len(advice) > DO:
                advice = f"{_CLAUSE.split(members[0].do)[0].removesuffix('.')}; {compiled}"
            if len(advice) > DO:
                advice = f"Remove the wait{'s' * (len(members) > 1)}; {compiled}"
        return ListedChange(
            gain=gain / self.base,
            gain_low=min(1.0, parts[0]) * gain / self.base,
            gain_high=min(before, parts[1] * gain) / self.base,
            before_us=before,
            after_us=us,
            after_low_us=low,
            after_high_us=high,
            amount=f"{gain / self.base:.0%}",
            becomes=_arrow(self.base if not rows else None, us, (low, high), self.base),
            place=place_of_habit(self.analysis, habit) if habit else place_of_syncs(members),
            do=advice,
            below=self._below(remedy, members),
            rule=habit.rule if habit else members[0].rule,
            findings=remedy.findings,
            habit=remedy.habit,
            remedy=self.analysis.remedies.index(remedy),
        )

    def _state(
        self, above: Sequence[Remedy], remedy: Remedy, rows: Sequence[ListedChange]
    ) -> tuple[float, tuple[float, float]]:
        """Return the step after a change and those above it, with a range no narrower than what they leave in doubt."""
        each = [*above, remedy]
        floor = self._floor(each)
        alone = self.base - remedy.alone_us, (self.base - remedy.range_us[1], self.base - remedy.range_us[0])
        if not rows:
            us, (low, high) = alone
            us = max(us, floor)
            return us, (min(us, max(low, floor)), min(self.base, max(high, us)))
        last = rows[-1]
        sampled = sum(r.alone_us for r in each if r.basis is Basis.SAMPLES)
        replayed_ones = [r for r in each if r.basis is Basis.REPLAY]
        state = self._replay(replayed_ones)
        us = last.after_us if state is None else state[0] - sampled
        us = max(floor, min(us, last.after_us))
        below, above_ = last.after_us - last.after_low_us, last.after_high_us - last.after_us
        if state is not None:
            below, above_ = max(below, state[0] - state[1][0]), max(above_, state[1][1] - state[0])
        return us, (max(floor, us - below), min(us + above_, last.after_high_us))

    def _replay(self, remedies_: Sequence[Remedy]) -> tuple[float, tuple[float, float]] | None:
        if self.analysis.projector is None:
            return None
        if not remedies_:
            return self.base, (self.base, self.base)
        findings = tuple(dict.fromkeys(id for r in remedies_ for id in r.findings))
        state = self.analysis.projector.state(findings, [edit for r in remedies_ for edit in self._edits(r)])
        if state is None:
            return None
        return state.us + self.shift, (state.range_us[0] + self.shift, state.range_us[1] + self.shift)

    def _edits(self, remedy: Remedy) -> Sequence[Change]:
        habit = self.habits.get(remedy.habit)
        if habit:
            return habit.changes[:1]
        return (remedy.compiled,) if remedy.launches else ()

    def _floor(self, remedies_: Sequence[Remedy]) -> float:
        """Return the device's own work, which no change on the host shortens: less what these change of it."""
        slices, steps = self.analysis.trace.slices, max(1, self.analysis.step.count)
        work = {row: part for r in remedies_ for edit in self._edits(r) for row, part in edit.work}
        gone = sum(float(slices.dur[row]) * (1.0 - part) for row, part in work.items()) / 1e3 / steps
        return max(0.0, min(self.base, self.analysis.step.device_busy_us - gone))

    def _below(self, remedy: Remedy, members: Sequence[Finding]) -> str:
        """Return what either part of a change gains alone: the compile or the syncs, or each of several syncs."""
        of = self.analysis.states
        if remedy.launches and of:
            compiled = of.state(remedy.launches, False)
            removing = f"line {_line_number(members[0])} alone" if len(members) == 1 else "removing the syncs alone"
            syncs = f"{removing} gains {_share(of.alone_us[0], self.base)}"
            return f"compiled alone: {_time(compiled.us, compiled.range_us, self.base)}; {syncs}" if compiled else syncs
        if len(members) < 2:
            return ""
        most = max(f.recoverable_us or 0.0 for f in members)
        return f"each alone gains {'at most ' if most >= LEAST * self.base else ''}{_share(most, self.base)}"


_CLAUSE = re.compile(r"[:;,]")
DO = 76
"""Characters of what to do, so that it is one line of a terminal."""
_LAUNCHES = "launch-bound"
_AREAS = {Bound.HOST: (Area.HOST, Area.DEVICE), Bound.DEVICE: (Area.DEVICE, Area.STREAMS)}


def _line_number(f: Finding) -> str:
    return short_line(f).rpartition(":")[2] or "it"


def _share(us: float, base: float) -> str:
    return f"{us / base:.0%}" if base and us >= LEAST * base else "nothing"


def _is_unprojected(analysis: Analysis) -> bool:
    return not analysis.remedies and analysis.step.recoverable_us is None


def _unprojected(analysis: Analysis) -> tuple[ListedChange, ...]:
    """Return the costliest syncs where nothing could be projected: with what they cost, or how often they wait."""
    by_id = {f.id: f for f in analysis.findings}
    listed = {f.id for f in analysis.shown.findings}
    entries = [text for text in remedies.describe(analysis) if text.members[0].id in listed]
    return tuple(
        ListedChange(
            gain=None,
            amount=text.saves,
            place=place_of_syncs([f]),
            do=f.do,
            rule=f.rule,
            findings=(f.id,),
        )
        for text in entries[:MOST]
        for f in (by_id[text.members[0].id],)
    )


def _gain(changes: Sequence[ListedChange]) -> float:
    gains = [change.gain for change in changes if change.gain is not None]
    return sum(gains)


def _removed(analysis: Analysis, changes: Sequence[ListedChange]) -> list[Finding]:
    ids = {id for change in changes for id in change.findings}
    return [f for f in analysis.findings if f.id in ids]


# numbers in words


_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))


def _arrow(before: float | None, us: float, limits: tuple[float, float], base: float) -> str:
    """Return `16.0 → 11.7 ms (10.6 to 12.8)`; both ends have the digits that the range supports."""
    size, _, decimals = _digits(limits, base)
    start = f"{before / size:.{decimals}f} " if before is not None else ""
    return f"{start}→ {_time(us, limits, base)}"


def _time(us: float, limits: tuple[float, float], base: float) -> str:
    size, unit, decimals = _digits(limits, base)
    low, high = (f"{limit / size:.{decimals}f}" for limit in limits)
    between = f" ({low} to {high})" if low != high else ""
    return f"{us / size:.{decimals}f} {unit}{between}"


def _digits(limits: tuple[float, float], base: float) -> tuple[float, str, int]:
    """Return the unit of the step, and the decimals of a time: its last digit is at most a tenth of the range's width.

    At most three digits are most of the step itself.
    """
    size, unit = next(((size, unit) for size, unit in _UNITS if base >= size), _UNITS[-1])
    most = 2 - math.floor(math.log10(base / size)) if base else 0
    width = (limits[1] - limits[0]) / size
    decimals = -math.floor(math.log10(width / 10)) if width > 0 else most
    return size, unit, max(0, min(decimals, most))


# sentences


_AWAITED = {
    Cause.READBACK: "a number",
    Cause.SHAPE: "a size",
    Cause.PAGEABLE: "a copy",
    Cause.CHECK: "a check",
    Cause.LOG: "a value to log",
    Cause.CTRL: "a condition",
    Cause.EXPLICIT: "all of its work",
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
        of = f" {step.input_share:.0%} of its time" if step.input_share else ""
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


def _of_syncs(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    first = changes[0] if changes and changes[0].findings else None
    members = _removed(analysis, [first]) if first else real(analysis.findings)
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
    area = next(h.advice.area for h in analysis.habits if h.id == first.habit)
    if area is Area.INPUT:
        return "the input: the host waits for the DataLoader"
    if area is Area.HOST or first.rule == _LAUNCHES:
        return "the host: the device waits for launches"
    return f"the device: it is busy {_busy(analysis) or 0.0:.0%} of the step"


def _of_host(analysis: Analysis, changes: Sequence[ListedChange], hottest: Hottest | None) -> str:
    if hottest:
        what = "line" if hottest.is_line else "op"
        return f"The host is the limit: one {what} takes {hottest.share:.0%} of the step."
    areas = {h.id: h.advice.area for h in analysis.habits}
    loads = any(areas.get(change.habit) is Area.INPUT for change in changes)
    return f"The host is the limit: the device waits for launches{', the host for input' if loads else ''}."


def _together(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    if dry_run.is_dry(analysis):
        steps = len(analysis.trace.steps)
        timed = f"Nothing was timed in {steps} step{'s' * (steps != 1)}; for costs add `--like TRACE`."
        return dry_run.summary(analysis) if analysis.likeness else timed
    if not len(analysis.trace.device_rows):
        return "Record the program with `syncscan profile`."
    if changes and changes[0].gain is None:
        return "What removing them gains can't be projected."
    if not changes:
        return _nothing(analysis)
    count = _NUMBERS[len(changes)]
    if changes[0].may:
        low, high = (f"{100 * max(0.0, gain):.0f}" for gain in (changes[0].gain_low, changes[0].gain_high))
        return f"{count} may make the step {low} to {high}% shorter."
    gain = _gain(changes)
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
        return f"Removing {'its one wait' if len(waits) == 1 else f'all {len(waits)} waits'} gains nothing."
    return "Removing syncs gains nothing."


def _then(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    """Return the limit once the syncs are gone, if they are all that is listed, and another limit."""
    outlook = analysis.step.outlook
    of_syncs = all(c.findings and c.gain is not None and not _launches(analysis, c) for c in changes)
    if outlook is None or not changes or not of_syncs or outlook.after is analysis.step.bound:
        return ""
    if outlook.after is Bound.DEVICE:
        return f"The device is the limit: busy {outlook.device_share:.0%}."
    return "The host is the limit: reduce launches." if outlook.after is Bound.HOST else ""


def _if_compiled(analysis: Analysis, changes: Sequence[ListedChange]) -> str:
    """Return what compiling comes to, or why nothing is promised of it, unless a change does it."""
    if any(change.habit.startswith(_LAUNCHES) or _launches(analysis, change) for change in changes):
        return ""
    obstacles = states.in_words(states.standing(analysis.obstacles, removed=True))
    bounds = any(r.basis is Basis.UPPER_BOUND and r.habit.startswith(_LAUNCHES) for r in analysis.remedies)
    if obstacles:
        first = obstacles.partition("; ")[0].removesuffix(".")
        return f"compiled: no gain is promised; {first[:1].lower()}{first[1:]}"
    if bounds or analysis.states is None:
        return ""
    base, after = analysis.states.baseline_us, replayed(analysis.step) * (1 - _gain(changes))
    each = [s for s in analysis.states.each if s.launches != states.EAGER and s.range_us[1] <= after - LEAST_MAY * base]
    best = min(each, key=lambda s: s.us, default=None)
    if best is None:
        return ""
    also = " and without its syncs" if best.removed else ""
    return f"{COMPILED[best.launches]}{also}: {_time(best.us, best.range_us, base)}, projected, not proven"


def _launches(analysis: Analysis, change: ListedChange) -> bool:
    return change.remedy is not None and bool(analysis.remedies[change.remedy].launches)


def _run(analysis: Analysis) -> RunBar | None:
    """Return the run's shares, if a phase takes a part of it that is worth knowing; of a dry run, what repeats."""
    run = analysis.run
    if dry_run.is_dry(analysis):
        sentence = program_run.sentence(analysis)
        return RunBar((), sentence) if sentence else None
    if run is None or run.steps_share is None or run.steps_share > 1 - RUN_WORTH:
        return None
    worth = [phase for phase in run.phases if (phase.share or 0.0) >= program_run.WORTH]
    parts = [RunPart("steps", run.steps_share), *(RunPart(phase.name, phase.share or 0.0) for phase in worth)]
    recorded = dict(zip((p.name for p in run.phases), program_run.analyses_of(analysis), strict=True))
    texts = [f"steps {run.steps_share:.0%}"]
    for phase in worth:
        missing = "" if recorded.get(phase.name) else "; not recorded"
        texts.append(f"{phase.name} {phase.share or 0.0:.0%} ({program_run.place(phase)}{missing})")
    return RunBar(tuple(parts), ", ".join(texts))


RUN_WORTH = 0.05
"""Part of the run outside of its steps from which on a first screen shows the run."""


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


# how sure


def _sureness(analysis: Analysis, changes: Sequence[ListedChange], hottest: Hottest | None) -> tuple[Sure, str]:
    if dry_run.is_dry(analysis):
        covered = analysis.trace.info.capture.coverage
        gaps = covered is not None and bool(covered.gaps)
        return ("partly", "Some ops weren't recognized.") if gaps else ("yes", "Every op that ran was recognized.")
    if lacks := [s for s in analysis.integrity.sentences() if s]:
        return "no", lacks[0]
    if analysis.step.outlook and analysis.step.outlook.first_use:
        return "no", f"{analysis.step.outlook.first_use}."
    if analysis.step.bound is Bound.UNKNOWN:
        return "no", "Nothing could be projected."
    doubt = timed_steps.uncertainty(analysis)
    timed = f"±{doubt:.0%} over {timed_steps.count(analysis)} timed steps"
    if doubt >= 1.0:
        return "no", f"Of the line, yes; of any gain: {timed}." if hottest else f"{timed}."
    if changes and changes[0].gain is None:
        return "no", "No gain could be projected."
    if changes and (changes[0].may or changes[0].gain_low <= 0.0):
        return "no", "The range includes 0."
    if reason := next(_doubts(analysis, changes, timed if doubt >= ROUGH else ""), ""):
        return "partly", reason
    if not changes:
        return "yes", "The step is steady, and its replay without syncs takes as long."
    return "yes", "The step is steady, and the whole range is a gain."


def _doubts(analysis: Analysis, changes: Sequence[ListedChange], timed: str) -> Iterator[str]:
    """Yield what keeps a gain from being sure, the most telling first."""
    mean = _mean_outside(analysis)
    if timed:
        yield f"{timed}; the run's mean is {duration(mean)}." if mean else f"{timed}."
    if mean:
        yield f"The run's mean is {duration(mean)}, outside of {_step(analysis)}."
    if analysis.step.device_share_basis is ShareBasis.ESTIMATED:
        guess = analysis.step.guessed_overhead
        share = f"{guess:.0%} of host time" if guess else "its share"
        yield f"The step wasn't timed without the profiler: {share} is an estimate."
    if not changes:
        high = (analysis.step.recoverable_range_us or (0.0, 0.0))[1] / max(1.0, replayed(analysis.step))
        if high >= LEAST_MAY and real(analysis.findings):
            yield f"Without its syncs, the step may be 0 to {high:.0%} shorter."
        return
    if any("likely" in change.place for change in changes):
        yield "That these waits are the cause is likely, not certain."
    if any("line not recorded" in change.place for change in changes if change.findings):
        yield "The recording has no source lines."
    low, whole = changes[-1].after_high_us, replayed(analysis.step)
    least, most = (whole - low) / whole, (whole - changes[-1].after_low_us) / whole
    if least < 0.5 * _gain(changes):
        yield f"The range is wide, {100 * max(0.0, least):.0f} to {most:.0%}."


def _mean_outside(analysis: Analysis) -> float:
    """Return the run's mean step, where the timed steps are steadier than their distance from it; else 0."""
    run, timed = analysis.run, analysis.step.unprofiled_us
    if run is None or run.steps_share is None or run.mean_us is None or not timed:
        return 0.0
    mean = run.mean_us * run.steps_share
    return mean if abs(mean - timed) > max(program_run.OFF, timed_steps.uncertainty(analysis)) * timed else 0.0


# the next command


_EXAMPLE = ("train.py",)
"""The program in commands for a reader whose program isn't known."""


def _next(
    analysis: Analysis, changes: Sequence[ListedChange], sure: Sure, program: Sequence[str] | None
) -> tuple[str, ...]:
    """Return how to record again where a gain isn't sure, else what explains the first change, or shows all."""
    trace, dry = analysis.trace.info.path, dry_run.is_dry(analysis)
    command_of = tuple(program or _EXAMPLE)
    if dry and changes and program:
        return _fitting(("syncscan", "fix", *program), changes)
    if dry and not changes:
        runs_function = program and ".py:" in program[0]  # which only a dry run and `fix` call
        return _fitting(("syncscan", "profile", *(_EXAMPLE if runs_function else command_of)), changes)
    if not dry and not len(analysis.trace.device_rows):
        return _fitting(("syncscan", "dryrun", *command_of), changes)
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
        return "syncscan", "explain", *([changes[0].rule] if changes else [])
    return (*command[:2], *(("--calibrate", command[3]) if "--calibrate" in command else ()), *_EXAMPLE)
