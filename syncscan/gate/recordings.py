"""Recordings of one state of a program, as checks and diffs read them, and what only recordings show of two states."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from syncscan.facts.period import step_times
from syncscan.gate.differences import DiffState, HabitChange, Site, SiteChange, SiteStatus
from syncscan.gate.matched_sites import Key, joined, matched, sites_of, unnumbered
from syncscan.gate.state import GainShare, State, Timing
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.habit import Habit
from syncscan.model.trace import CALLS, Category

COMMON = 0.2
"""Least part of a state's kernel time in kernels that the other state runs too, for the two to be one program."""
UNRELATED = (
    "These seem to be two different programs: no sync is at the same place in both, and hardly a kernel runs in both. "
    "A diff compares states of one program."
)
_NOTABLE = (Severity.HIGH, Severity.MEDIUM)


class Recordings(State):
    """One or more recordings of a program in one state; a check reads a single one."""

    def __init__(self, analyses: Sequence[Analysis]) -> None:
        self.analyses = analyses
        first = analyses[0]
        info = first.trace.info
        self.name = info.path
        self.facts = DiffState(
            paths=tuple(a.trace.info.path for a in analyses),
            steps=sum(a.step.count for a in analyses),
            device=info.devices[0] if info.devices else "",
            bound=first.step.bound.value,
        )
        self.steps_by = frozenset(a.trace.steps_found.by for a in analyses)
        self.devices = frozenset(name for a in analyses for name in a.trace.info.devices)
        self.options = frozenset((a.trace.info.with_stack, a.trace.info.record_shapes) for a in analyses)
        self.waits_withheld = any(a.step.waits_withheld for a in analyses)

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings of the first recording."""
        return self.analyses[0].findings

    @cached_property
    def sites(self) -> Mapping[Key, Site]:
        """The sites of all recordings, merged by place."""
        sites: dict[Key, Site] = {}
        steps = 0
        for analysis in self.analyses:
            added, count = sites_of(analysis), max(1, analysis.step.count)
            grown: dict[Key, Site] = {}
            for site, other in matched(sites, added):
                earlier = joined([sites[k] for k in site]) if site else None
                later = joined([added[k] for k in other]) if other else None
                grown[(*site, *other)[0]] = _appended(earlier, steps, later, count)
            sites, steps = grown, steps + count
        return sites

    @cached_property
    def timings(self) -> Sequence[Timing]:
        return [
            Timing(
                observed_us=a.step.observed_us,
                unprofiled_us=a.step.unprofiled_us,
                device_us=a.step.device_busy_us + a.step.communication_us,
                ahead_us=a.step.run_ahead.median_us if a.step.run_ahead else None,
                steps_us=[time / 1e3 for time in step_times(a.trace)],
                unprofiled_steps_us=a.trace.info.capture.unprofiled_steps_us,
            )
            for a in self.analyses
        ]

    def projected(self, removed: Sequence[Site]) -> Sequence[GainShare]:
        ids = {f.id for site in removed for f in site.findings}
        present = [(a, [f for f in a.findings if f.id in ids]) for a in self.analyses]
        shares = (_share(analysis, findings) for analysis, findings in present if findings)
        return [share for share in shares if share is not None]

    def most(self, selected: Sequence[Finding], field: str) -> tuple[float, str]:
        return sum(getattr(f, field) or 0.0 for f in selected), ""

    def saved(self, selected: Sequence[Finding]) -> tuple[float, float] | None:
        share = _share(self.analyses[0], selected)
        return (share[0], share[0]) if share else None

    def unseen(self) -> str:
        """Return whether the trace has no calls, in which syncs could be seen."""
        trace = self.analyses[0].trace
        if trace.is_category(*CALLS, Category.SYNC).any() or trace.info.capture.pretended:
            return ""
        return "The trace has no device runtime calls, so syncs can't be seen: nothing was checked."


def _appended(earlier: Site | None, steps: int, later: Site | None, count: int) -> Site:
    """Return a site of several recordings, extended by one more; it doesn't wait in recordings that don't have it."""
    sites = [site for site in (earlier, later) if site]
    seen = {**(earlier.seen if earlier else {}), **{steps + n: at for n, at in (later.seen if later else {}).items()}}
    return Site(
        findings=tuple(f for site in sites for f in site.findings),
        steps=steps + count,
        seen=seen,
        bubble_us=statistics.fmean(site.bubble_us for site in sites),
        recoverable_us=_mean(site.recoverable_us for site in sites),
        once_compiled_us=_mean(site.once_compiled_us for site in sites),
        always=any(site.always for site in sites),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _share(analysis: Analysis, findings: Sequence[Finding]) -> GainShare | None:
    """Return what removing these findings saves; their ids are matched literally, not as globs."""
    if not analysis.replayable or analysis.step.recoverable_us is None:
        return None
    projection = analysis.whatif(*(f"id:{_literal(f.id)}" for f in findings), fix=True)
    base = projection.baseline_us or 1.0
    low, high = projection.range_us
    return max(0.0, projection.saving_us) / base, max(0.0, base - high) / base, max(0.0, base - low) / base


def _literal(id: str) -> str:
    return id.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")


def habit_changes(before: Sequence[Analysis], after: Sequence[Analysis]) -> tuple[HabitChange, ...]:
    """Return the habits that matter in every recording of one state and are in none of the other.

    Habits of one rule and scope are one, but for those of different work that only samples show.
    """
    removed = (HabitChange(SiteStatus.GONE, habit.rule, habit.scope) for habit in _only(before, after))
    new = (HabitChange(SiteStatus.NEW, habit.rule, habit.scope) for habit in _only(after, before))
    return (*removed, *new)


def _only(these: Sequence[Analysis], those: Sequence[Analysis]) -> Iterator[Habit]:
    elsewhere = {_key(habit) for analysis in those for habit in analysis.habits}
    everywhere = set.intersection(*({_key(h) for h in a.habits if h.severity in _NOTABLE} for a in these))
    yield from ({_key(h): h for h in these[0].habits if _key(h) in everywhere - elsewhere}).values()


def _key(habit: Habit) -> tuple[str, str, tuple[str, ...]]:
    return habit.rule, habit.sampled.activity if habit.sampled else "", tuple(map(unnumbered, habit.scope))


def unrelated(before: Sequence[Analysis], after: Sequence[Analysis], changes: Sequence[SiteChange]) -> bool:
    """Return whether nothing suggests that both states are of one program; False where one has no kernels."""
    if any(change.before and change.after for change in changes):
        return False
    ours, theirs = _kernels(before), _kernels(after)
    if not ours or not theirs:
        return False
    return max(_common(ours, theirs), _common(theirs, ours)) < COMMON


def _kernels(side: Sequence[Analysis]) -> dict[str, float]:
    """Return the time of the kernels by name, ns."""
    times: dict[str, float] = {}
    for trace in (analysis.trace for analysis in side):
        s, rows = trace.slices, trace.device_rows
        rows = rows[s.category[rows] == int(Category.KERNEL)]
        took = np.bincount(s.name[rows], weights=s.end[rows] - s.ts[rows]) if len(rows) else np.zeros(0)
        for name in np.flatnonzero(took).tolist():
            text = trace.strings[name]
            times[text] = times.get(text, 0.0) + float(took[name])
    return times


def _common(one: dict[str, float], other: dict[str, float]) -> float:
    """Return the part of the first one's time in kernels that the other has."""
    return sum(us for name, us in one.items() if name in other) / sum(one.values())
