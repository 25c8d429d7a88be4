"""List the changes of a first screen: at most three, each a projected state of the step that adds to those above it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Confidence, Finding
from syncscan.model.habit import Area, Basis
from syncscan.model.projection import Remedy
from syncscan.model.states import REDUCE_OVERHEAD
from syncscan.model.step import Bound
from syncscan.report import remedies
from syncscan.report.front_places import place_of_habit, place_of_syncs, short_line
from syncscan.report.phrases import real, replayed
from syncscan.report.units import in_unit_of, time_and_range, time_with_range

_AT_LINE = re.compile(r":\d|\(\) in ")
MOST = 3
"""Changes that a first screen lists."""
EACH = "Take the costliest first; each finding says what to do instead."
"""Advice on many waits, none of which gains much."""
TRIED = 6
"""Changes of which it is tried what they add to those above."""
LEAST, LEAST_MAY = 0.01, 0.02
"""Part of the step that a change adds at least, and its range's lower end; and that the best one adds at least where no
range's lower end is that high."""


class ListedChange(Struct, frozen=True, kw_only=True):
    """A change, and the step's state after it and those above it; times in µs, gains as shares of the step."""

    gain: float | None
    """Part of the step that it adds to the rows above; None where nothing was projected, as after a dry run."""
    gain_low: float = 0.0
    may: bool = False
    """Whether the step may gain nothing by it."""
    before_us: float = 0.0
    after_us: float = 0.0
    after_low_us: float = 0.0
    after_high_us: float = 0.0
    amount: str
    """The gain in words: `27%`, `may 9%`; what it costs where nothing was projected: `14 times per step`."""
    start: str = ""
    """The step before the first change in words, without its unit: `16.0`; empty for a later row."""
    takes: str = ""
    """The step after the change in words: `11.7 ms`."""
    between: str = ""
    """Its range: `10.6 to 12.8`; empty where it has none."""
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
    """Index in the analysis's list of remedies; None where nothing was projected, and for all waits that are left."""

    @property
    def is_at_line(self) -> bool:
        """Whether the place is a line or a function, and no part of the step."""
        return bool(_AT_LINE.search(self.place))

    @property
    def becomes(self) -> str:
        """The step before and after: `16.0 → 11.7 ms (10.6 to 12.8)`; empty where nothing was projected."""
        if not self.takes:
            return ""
        return f"{self.start} → {self.takes}{f' ({self.between})' if self.between else ''}".lstrip()

    @property
    def in_words(self) -> str:
        """The change on one line: `27%, 16.0 → 11.7 ms (11.1 to 12.8), train.py:47, .item(): Keep it …`."""
        return f"{', '.join(part for part in (self.amount, self.becomes, self.place) if part)}: {self.do}"


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
        if len(rows) < MOST and (not rows or self.analysis.step.bound is Bound.SYNC):
            rows += self._of_all_syncs(chosen, rows)
        return rows or self._best(candidates)

    def _of_all_syncs(self, chosen: Sequence[Remedy], rows: Sequence[ListedChange]) -> list[ListedChange]:
        """Return the change that removes all syncs that are left, if they gain something together."""
        step = self.analysis.step
        removed = {id for remedy in chosen for id in remedy.findings}
        left = [f for f in real(self.analysis.shown.findings) if f.id not in removed]
        if len(left) < 2 or self.analysis.shown.hidden or not step.recoverable_us or not step.recoverable_range_us:
            return []
        every = Remedy(
            findings=tuple(f.id for f in left),
            what="",
            alone_us=step.recoverable_us,
            range_us=step.recoverable_range_us,
            after_us=None,
            basis=Basis.REPLAY,
            confidence=max((f.confidence for f in left), key=list(Confidence).index),
        )
        row = self._row(chosen, every, rows)
        if row.gain is None or row.gain < LEAST or row.gain_low < LEAST:
            return []
        return [replace(row, do=EACH)]

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
        """Return the change that may gain most, where none surely does."""
        rows = [self._row([], remedy, []) for remedy in candidates]
        likely = [row for row in rows if row.gain is not None and row.gain >= LEAST_MAY]
        return [replace(row, may=True, amount=f"may {row.amount}") for row in likely[:1]]

    def _named(self, remedy: Remedy) -> bool:
        """Return whether a change is about what the verdict names."""
        bound, habit = self.analysis.step.bound, self.habits.get(remedy.habit)
        if habit is None:
            return bound is Bound.SYNC or (bound is Bound.HOST and bool(remedy.launches))
        if bound is Bound.INPUT:
            return habit.area is Area.INPUT
        return bound in (Bound.HOST, Bound.DEVICE) and habit.area in _AREAS[bound]

    def _contains(self, other: Remedy, remedy: Remedy) -> bool:
        """Return whether a change that is listed already does all that this one does."""
        if other.findings and remedy.findings:
            return set(remedy.findings) <= set(other.findings)
        compiles = [bool(r.launches) or r.habit.startswith(LAUNCHES) for r in (other, remedy)]
        return all(compiles)

    def _row(self, above: Sequence[Remedy], remedy: Remedy, rows: Sequence[ListedChange]) -> ListedChange:
        habit = self.habits.get(remedy.habit)
        members = [self.findings[id] for id in remedy.findings]
        before = rows[-1].after_us if rows else self.base
        us, (low, high) = self._state(above, remedy, rows)
        takes, between = time_and_range(us, (low, high), self.base)
        gain = max(0.0, before - us)
        least = remedy.range_us[0] / remedy.alone_us if remedy.alone_us else 0.0
        advice = habit.do if habit else members[0].do
        if remedy.launches:
            compiled = f'torch.compile(model, mode="{remedy.launches}").'
            advice = f"{advice.removesuffix('.')}; {compiled}"
            if len(advice) > DO:
                advice = f"{_CLAUSE.split(members[0].do)[0].removesuffix('.')}; {compiled}"
            if len(advice) > DO:
                advice = f"Remove the wait{'s' * (len(members) > 1)}; {compiled}"
        return ListedChange(
            gain=gain / self.base,
            gain_low=min(1.0, least) * gain / self.base,
            before_us=before,
            after_us=us,
            after_low_us=low,
            after_high_us=high,
            amount=f"{gain / self.base:.0%}",
            start=in_unit_of(self.base, (low, high), self.base) if not rows else "",
            takes=takes,
            between=between,
            place=place_of_habit(self.analysis, habit) if habit else place_of_syncs(members),
            do=advice,
            below=self._below(remedy, members),
            rule=habit.rule if habit else members[0].rule,
            findings=remedy.findings,
            habit=remedy.habit,
            remedy=next((k for k, r in enumerate(self.analysis.remedies) if r is remedy), None),
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

    def _replay(self, chosen: Sequence[Remedy]) -> tuple[float, tuple[float, float]] | None:
        if self.analysis.projector is None:
            return None
        if not chosen:
            return self.base, (self.base, self.base)
        findings = tuple(dict.fromkeys(id for r in chosen for id in r.findings))
        if compiled := self._compiled(chosen, findings):
            return compiled
        state = self.analysis.projector.state(findings, [r.change for r in chosen])
        if state is None:
            return None
        return state.us + self.shift, (state.range_us[0] + self.shift, state.range_us[1] + self.shift)

    def _compiled(self, chosen: Sequence[Remedy], findings: Sequence[str]) -> tuple[float, tuple[float, float]] | None:
        """Return the step without all of its syncs and compiled, where that is what is chosen: it is one state."""
        states, program = self.analysis.states, {f.id for f in self.analysis.findings if not f.intended}
        launches = [r.launches or REDUCE_OVERHEAD for r in chosen if r.launches or r.habit.startswith(LAUNCHES)]
        others = [r for r in chosen if r.habit and not r.habit.startswith(LAUNCHES)]
        if not states or not launches or others or not program <= set(findings):
            return None
        state = states.state(launches[0], True)
        return (state.us, state.range_us) if state else None

    def _floor(self, chosen: Sequence[Remedy]) -> float:
        """Return the device's own work, which no change on the host shortens: less what these change of it."""
        slices, steps = self.analysis.trace.slices, max(1, self.analysis.step.count)
        work = {row: part for r in chosen for row, part in r.change.work}
        less = sum(float(slices.dur[row]) * (1.0 - part) for row, part in work.items()) / 1e3 / steps
        return max(0.0, min(self.base, self.analysis.step.device_busy_us - less))

    def _below(self, remedy: Remedy, members: Sequence[Finding]) -> str:
        """Return what either part of a change gains alone: the compile or the syncs, or each of several syncs."""
        of = self.analysis.states
        if remedy.launches and of:
            compiled = of.state(remedy.launches, False)
            removing = f"line {_line_number(members[0])} alone" if len(members) == 1 else "removing the syncs alone"
            syncs = f"{removing} gains {_share(of.alone_us[0], self.base)}"
            if compiled is None:
                return syncs
            return f"compiled alone: {time_with_range(compiled.us, compiled.range_us, self.base)}; {syncs}"
        if len(members) < 2:
            return ""
        most = max(f.recoverable_us or 0.0 for f in members)
        return f"each alone gains {'at most ' if most >= LEAST * self.base else ''}{_share(most, self.base)}"


_CLAUSE = re.compile(r"[:;,]")
DO = 76
"""Characters of what to do, so that it is one line of a terminal."""
LAUNCHES = "launch-bound"
_AREAS = {Bound.HOST: (Area.HOST, Area.DEVICE), Bound.DEVICE: (Area.DEVICE, Area.STREAMS)}


def _line_number(f: Finding) -> str:
    return short_line(f).rpartition(":")[2] or "it"


def _share(us: float, base: float) -> str:
    return f"{us / base:.0%}" if base and us >= LEAST * base else "nothing"


def changes_of(analysis: Analysis) -> tuple[ListedChange, ...]:
    """Return the changes that a first screen lists; where nothing was projected, the costliest syncs."""
    unprojected = not analysis.remedies and analysis.step.recoverable_us is None
    return _unprojected(analysis) if unprojected else _Changes(analysis).listed


def _unprojected(analysis: Analysis) -> tuple[ListedChange, ...]:
    """Return the costliest syncs where nothing could be projected: with what they cost, or how often they wait."""
    listed = {f.id for f in analysis.shown.findings}
    entries = [(text, f) for text in remedies.describe(analysis) for f in text.members[:1] if f.id in listed]
    return tuple(
        ListedChange(gain=None, amount=text.saves, place=place_of_syncs([f]), do=f.do, rule=f.rule, findings=(f.id,))
        for text, f in entries[:MOST]
    )


def gain_of(changes: Sequence[ListedChange]) -> float:
    """Return what changes gain together, a share of the step."""
    return sum(change.gain for change in changes if change.gain is not None)


def removed_by(analysis: Analysis, changes: Sequence[ListedChange]) -> list[Finding]:
    ids = {id for change in changes for id in change.findings}
    return [f for f in analysis.findings if f.id in ids]
