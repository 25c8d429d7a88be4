"""Compare two states of a program or job: syncs added, removed or changed, and the step time gained."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.gate.baseline import MORE
from syncscan.gate.differences import (
    Diff,
    MovedWait,
    Promise,
    PromiseOutcome,
    Site,
    SiteChange,
    SiteStatus,
    StepChange,
)
from syncscan.gate.jobs import JobState
from syncscan.gate.match import matched
from syncscan.gate.recordings import UNRELATED, Recordings, habit_changes, unrelated
from syncscan.gate.sites import Key, joined
from syncscan.gate.state import GainShare, State
from syncscan.gate.step_change import difference, step_change
from syncscan.model.analysis import Analysis
from syncscan.model.fleet import Fleet

LEAST = 0.01
"""Changes of a wait by less than this fraction of the step are ignored."""
COARSE = 0.05
"""Smallest gain, as a fraction of the step, that counts as verifiable if the step time isn't known better."""
CHANCE = 0.05
"""Probability by chance below which a site that isn't in every step counts as new or removed."""

_ORDER = (SiteStatus.NEW, SiteStatus.CHANGED, SiteStatus.GONE, SiteStatus.OCCASIONAL, SiteStatus.SAME)


def diff(before: Iterable[Analysis] | Fleet, after: Iterable[Analysis] | Fleet) -> Diff:
    """Return the differences between two states of a program or job: places added, removed or changed, and the step.

    Args:
        before: recordings of the earlier state; several, of the same code, tell noise from change. Or a job.
        after: those of the later state.

    Raises:
        UsageError: one of the states has no recording, or only one of the two is a job.
    """
    if isinstance(before, Fleet) and isinstance(after, Fleet):
        return _compared(JobState(before), JobState(after))
    if isinstance(before, Fleet) or isinstance(after, Fleet):
        raise UsageError("A job can only be compared with a job.")
    sides = tuple(before), tuple(after)
    if not all(sides):
        raise UsageError("A diff needs at least one recording of each state.")
    result = _compared(*map(Recordings, sides))
    different = unrelated(*sides, result.changes)
    return replace(
        result,
        habits=() if result.step.why_not else habit_changes(*sides),
        notes=(*((UNRELATED,) if different else ()), *result.notes),
        unrelated=different,
    )


def _compared(before: State, after: State) -> Diff:
    step = step_change(before, after)
    steps = max(1, before.facts.steps), max(1, after.facts.steps)
    changes = [_change(*pair, step, steps) for pair in _pairs(before, after)]
    changes.sort(key=lambda c: (_ORDER.index(c.change), c.site.intended, -_weight(c), c.site.first.id))
    removed = [c.before for c in changes if c.change is SiteStatus.GONE and c.before]
    return Diff(
        before=before.facts,
        after=after.facts,
        changes=tuple(changes),
        moved=tuple(_moved(changes, removed)),
        gone_wait_us=sum(site.wait_us for site in removed if not site.intended),
        step=step,
        promise=_promise(before.projected(removed), step),
        notes=tuple(_notes(before, after)),
    )


def _pairs(before: State, after: State) -> Iterator[tuple[Site | None, Site | None]]:
    """Yield each site before and after; one state may know lines where the other knows only their function."""
    for keys, others in matched(before.sites, after.sites):
        yield _joined(before.sites, keys), _joined(after.sites, others)


def _joined(sites: Mapping[Key, Site], keys: Sequence[Key]) -> Site | None:
    return joined([sites[k] for k in keys]) if keys else None


def _change(before: Site | None, after: Site | None, step: StepChange, steps: tuple[int, int]) -> SiteChange:
    """Return the change of one place; `steps` are the numbers of steps of each state."""
    if before is None or after is None:
        return SiteChange(change=_gone_or_new(before, after, steps), before=before, after=after)
    comparable = not step.why_not
    often = comparable and _more_often(before, after)
    long = comparable and _longer(before, after, step)
    ranks = comparable and before.ranks != after.ranks
    kind = SiteStatus.CHANGED if often or long or ranks else SiteStatus.SAME
    return SiteChange(change=kind, before=before, after=after, how_often=often, how_long=long, other_ranks=ranks)


def _gone_or_new(before: Site | None, after: Site | None, steps: tuple[int, int]) -> SiteStatus:
    """Return the change of a place that is in one state only; it may occur in some steps only."""
    seen, step = (before, steps[0]) if before else (after, steps[1])
    if seen and not seen.always:
        hits = len(seen.seen)
        if _log_choices(step, hits) - _log_choices(sum(steps), hits) > math.log(
            CHANCE
        ):  # all in one state: Fisher's exact test
            return SiteStatus.OCCASIONAL
    return SiteStatus.GONE if before else SiteStatus.NEW


def _log_choices(of: int, some: int) -> float:
    """Return the logarithm of the number of ways to choose `some` of `of`."""
    return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)


def _more_often(before: Site, after: Site) -> bool:
    """Return whether the number of waits changed by more than it varies between steps."""
    one, other = before.counts, after.counts
    return one.median != other.median and abs(other.mean - one.mean) > max(difference(one, other), MORE)


def _longer(before: Site, after: Site, step: StepChange) -> bool:
    """Return whether the wait changed by more than it varies between steps and recordings."""
    noise = math.hypot(difference(before.waits, after.waits), step.margin_us)
    return abs(after.wait_us - before.wait_us) > max(noise, LEAST * max(step.before_us, step.after_us))


def _weight(change: SiteChange) -> float:
    before, after = (site.wait_us if site else 0.0 for site in (change.before, change.after))
    return abs(after - before) if change.change is SiteStatus.CHANGED else max(before, after)


def _moved(changes: Sequence[SiteChange], removed: Sequence[Site]) -> Iterator[MovedWait]:
    """Yield where the wait of removed sites moved: to places that now wait longer, in proportion."""
    lost = sum(site.wait_us for site in removed)
    longer = [c for c in changes if c.change is SiteStatus.NEW or (c.how_long and _rise(c) > 0)]
    rises = sum(map(_rise, longer))
    for change in sorted(longer, key=_rise, reverse=True):
        if change.after and removed and (us := _rise(change) * min(1.0, lost / rises) if rises else 0.0) > LEAST * lost:
            before = change.before.wait_us if change.before else 0.0
            yield MovedWait(to=change.after, before_us=before, after_us=change.after.wait_us, us=us)


def _rise(change: SiteChange) -> float:
    before, after = (site.wait_us if site else 0.0 for site in (change.before, change.after))
    return after - before


def _promise(shares: Sequence[GainShare], step: StepChange) -> Promise | None:
    """Return what the earlier state's replays projected without the removed sites, scaled to the compared step."""
    if not shares:
        return None
    saving, least, most = (
        statistics.fmean(column) * step.before_us
        for column in ([s.gain for s in shares], [s.least for s in shares], [s.most for s in shares])
    )
    return Promise(saving_us=saving, range_us=(least, most), kept=_promise_kept(least, most, step))


def _promise_kept(least: float, most: float, step: StepChange) -> PromiseOutcome:
    if step.why_not or step.margin_us > max(most, COARSE * step.before_us):
        return PromiseOutcome.UNKNOWN
    if step.saving_us + step.margin_us < least:
        return PromiseOutcome.LESS
    return PromiseOutcome.MORE if step.saving_us - step.margin_us > most else PromiseOutcome.YES


def _notes(before: State, after: State) -> Iterator[str]:
    """Yield differences between the recordings that aren't the program's doing."""
    if before.options != after.options:
        yield "They were recorded with different profiler options, which slow a host differently."
    if before.waits_withheld or after.waits_withheld:
        yield "Some recordings don't show how long their waits last."
    yield from before.lacks("before")
    yield from after.lacks("after")
