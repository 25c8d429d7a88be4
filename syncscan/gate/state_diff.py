"""Compare two states of a program or job: syncs added, removed or changed, and the step time gained."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

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
    Spread,
    StepChange,
)
from syncscan.gate.jobs import JobState
from syncscan.gate.matched_sites import Key, joined, matched
from syncscan.gate.recordings import UNRELATED, Recordings, habit_changes, unrelated
from syncscan.gate.state import GainShare, State, Timing
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
            yield MovedWait(to=change.after.first, before_us=before, after_us=change.after.wait_us, us=us)


def _rise(change: SiteChange) -> float:
    before, after = (site.wait_us if site else 0.0 for site in (change.before, change.after))
    return after - before


def _promise(shares: Sequence[GainShare], step: StepChange) -> Promise | None:
    """Return what the earlier state's replays projected without the removed sites, scaled to the compared step."""
    if not shares:
        return None
    saving, least, most = (statistics.fmean(column) * step.before_us for column in zip(*shares, strict=True))
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


T95 = (12.7, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)
"""Student's t for 95 %, two-sided, from one degree of freedom on (NIST, Engineering Statistics Handbook, 1.3.6.7.2)."""
NORMAL = 1.96
"""Student's t for many degrees of freedom."""
STRETCH = 0.18
"""Variation of the profiler's slowdown of a host between recordings: the standard deviation of log(step in the trace /
step without the profiler), 0.17 over 56 recordings without stacks and 0.18 over 7 with (H200, torch 2.11, steps that
work the device less than 90 %). Two recordings of one program lay 1.55 times apart."""
OTHERWISE = 0.6
"""That variation if the profiler's options differ: with stacks a host was slowed by a factor of 2.6, without by 1.5
(geometric means over the same recordings)."""
AGAIN = 0.004
"""Relative standard deviation of a device's time when a step is recorded again: for one device-bound step three
recordings lay 0.2 % apart, for two others 0.03 and 0.5 % (H200, torch 2.11: maskedloss.v0, .v3, zoo.ops)."""
HOST_AGAIN = 0.01
"""That deviation for a host without the profiler: two captures of one host-bound step lay 1.8 % apart
(sample_traces/lines)."""

WANDERS = 2.5
"""Factor from the covariance of neighboring steps to a host's deviation in the next recording. On a shared host, speed
wanders by a tenth over ten to twenty steps and differs minutes later: of 52 processes of one unchanged step (H200,
torch 2.11, 16 shared cores) two recordings of forty steps differed, by this margin, in 3 % of 255 pairs where one
process followed the other and in 7 % of all 6,630; with steps treated as independent, in 77 and 81 %
(`benchmarks.wandering`)."""


def step_change(before: State, after: State) -> StepChange:
    """Return the step times of two states: without the profiler where each recording knows that time, else recorded."""
    sides = before.timings, after.timings
    unprofiled = all(timing.unprofiled_us for side in sides for timing in side)
    old, new = (statistics.fmean(timing.step_us(unprofiled) for timing in side) for side in sides)
    stretch = STRETCH if before.options == after.options else OTHERWISE
    device_before, device_after = (statistics.fmean(timing.device_us for timing in side) for side in sides)
    return StepChange(
        before_us=old,
        after_us=new,
        margin_us=_margin(*sides, None if unprofiled else stretch),
        unprofiled=unprofiled,
        device_us=(device_before, device_after),
        ahead_us=_ahead(*sides),
        why_not=_why_not(before, after),
    )


def _ahead(*sides: Sequence[Timing]) -> tuple[float, float] | None:
    known = [[timing.ahead_us for timing in side if timing.ahead_us is not None] for side in sides]
    return (statistics.fmean(known[0]), statistics.fmean(known[1])) if all(known) else None


def difference(before: Spread, after: Spread) -> float:
    """Return half-width of the 95 % interval around the difference of two means (Welch); 0 without any spread."""
    errors = [x.variance / x.count if x.count else 0.0 for x in (before, after)]
    freedom = [e * e / (x.count - 1) for e, x in zip(errors, (before, after), strict=True) if x.count > 1]
    if not sum(freedom):
        return 0.0
    degrees = int(sum(errors) ** 2 / sum(freedom))
    factor = T95[max(degrees, 1) - 1] if degrees <= len(T95) else NORMAL
    return factor * math.sqrt(sum(errors))


def _margin(before: Sequence[Timing], after: Sequence[Timing], stretch: float | None) -> float:
    """Return the margin, from the spread of recordings if both states have several, else of steps and typical noise.

    `stretch` is how differently the profiler slows the host; None for steps without the profiler.
    """
    unprofiled = stretch is None
    if len(before) > 1 and len(after) > 1:
        return difference(*(Spread.of([timing.step_us(unprofiled) for timing in side]) for side in (before, after)))
    within = difference(
        *(Spread.of([us for timing in side for us in timing.steps(unprofiled)]) for side in (before, after))
    )
    return math.hypot(within, NORMAL * math.hypot(*(_again(side, stretch) for side in (before, after))))


def _again(side: Sequence[Timing], stretch: float | None) -> float:
    """Return the standard error of recording this state again, µs, from its device and its host."""
    errors = []
    for timing in side:
        step = timing.step_us(stretch is None)
        host = _host_again(timing.steps(True)) if stretch is None else stretch
        errors.append(math.hypot(AGAIN * step, host * step * timing.of_host))
    return math.hypot(*errors) / max(1, len(errors))


def _host_again(steps: Sequence[float]) -> float:
    """Return the relative deviation to expect of a host, given consecutive step times."""
    if len(steps) < 2:
        return HOST_AGAIN
    mean = statistics.fmean(steps)
    shared = sum((a - mean) * (b - mean) for a, b in itertools.pairwise(steps)) / (len(steps) - 1)
    return math.hypot(HOST_AGAIN, WANDERS * math.sqrt(max(0.0, shared)) / mean)


def _why_not(before: State, after: State) -> str:
    if before.size != after.size:
        return f"The jobs have {before.facts.ranks} and {after.facts.ranks} ranks."
    if before.steps_by != after.steps_by:
        return "Steps were found in different ways, so a step of one isn't a step of the other."
    if before.devices != after.devices:
        return f"They were recorded on different devices: {_names(before.devices)}, and {_names(after.devices)}."
    return ""


def _names(devices: Collection[str]) -> str:
    return ", ".join(sorted(devices)) or "none that they name"
