"""Compare two states of a job, given as Fleets: places over ranks, the step, and the earlier projection."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

from syncscan.gate.baseline import MORE
from syncscan.gate.comparison import COARSE, LEAST
from syncscan.gate.fleet_sites import most_often, sites_of
from syncscan.gate.match import matched
from syncscan.gate.sites import Key
from syncscan.gate.step_change import AGAIN, HOST_AGAIN, NORMAL, STRETCH, difference
from syncscan.model.diff import Promise, PromiseOutcome, SiteStatus, Spread, StepChange
from syncscan.model.fleet import Fleet, JobFinding
from syncscan.model.fleet_diff import FleetDiff, JobChange, JobSite, JobState
from syncscan.model.step import BOUND_FROM

_ORDER = (SiteStatus.NEW, SiteStatus.CHANGED, SiteStatus.GONE, SiteStatus.SAME)


def diff_fleets(before: Fleet, after: Fleet) -> FleetDiff:
    """Return the differences between two states of a job."""
    step = _step_change(before, after)
    changes = [_change(one, other, step) for one, other in _pairs(before, after)]
    changes.sort(key=lambda c: (_ORDER.index(c.change), c.site.intended, -c.site.wait_us, c.site.first.id))
    removed = [c.before for c in changes if c.change is SiteStatus.GONE and c.before]
    return FleetDiff(
        before=_state(before),
        after=_state(after),
        changes=tuple(changes),
        step=step,
        promise=_promise(before, [f for site in removed for f in site.findings if not f.first.intended], step),
        notes=tuple(_notes(before, after)),
    )


def _state(fleet: Fleet) -> JobState:
    late: defaultdict[int, float] = defaultdict(float)
    for entry in fleet.lateness:
        late[entry.rank] += entry.late_us
    return JobState(
        ranks=len(fleet.ranks),
        steps=len(fleet.steps),
        held_up_us=sum(late.values()) / max(1, len(fleet.steps)),
        holders=tuple(sorted(late, key=lambda rank: (-late[rank], rank))),
    )


def _pairs(before: Fleet, after: Fleet) -> Iterator[tuple[JobSite | None, JobSite | None]]:
    old, new = sites_of(before.findings), sites_of(after.findings)
    for one, other in matched(old, new):
        yield _join(before, old, one), _join(after, new, other)


def _join(fleet: Fleet, sites: dict[Key, tuple[JobFinding, ...]], keys: Sequence[Key]) -> JobSite | None:
    """Merge sites: one state may know lines where the other knows only the function."""
    findings = [f for key in keys for f in sites[key]]
    if not findings:
        return None
    findings.sort(key=lambda f: -(f.wait_us or 0.0))
    often = most_often(fleet)
    gains = [f.gain_us for f in findings if f.gain_us is not None]
    return JobSite(
        findings=tuple(findings),
        ranks=tuple(sorted({rank for f in findings for rank in f.ranks})),
        per_step=sum(often.get(f.id, f.first.per_step) for f in findings),
        wait_us=sum(f.wait_us or 0.0 for f in findings),
        gain_us=max(gains, default=None),
    )


def _change(before: JobSite | None, after: JobSite | None, step: StepChange) -> JobChange:
    if before is None or after is None:
        return JobChange(change=SiteStatus.GONE if before else SiteStatus.NEW, before=before, after=after)
    often = abs(after.per_step - before.per_step) > MORE
    noise = max(step.margin_us, LEAST * max(step.before_us, step.after_us))
    long = not step.why_not and abs(after.wait_us - before.wait_us) > noise
    ranks = before.ranks != after.ranks and not step.why_not
    kind = SiteStatus.CHANGED if often or long or ranks else SiteStatus.SAME
    return JobChange(change=kind, before=before, after=after, how_often=often, how_long=long, other_ranks=ranks)


def _step_change(before: Fleet, after: Fleet) -> StepChange:
    """Return the change of the job's step: without the profiler where both states know that time, else as recorded."""
    unprofiled = bool(before.unprofiled_us and after.unprofiled_us)
    old, new = (_time(fleet, unprofiled) for fleet in (before, after))
    within = difference(Spread.of(_steps(before)), Spread.of(_steps(after))) if not unprofiled else 0.0
    again = math.hypot(_again(before, old, unprofiled), _again(after, new, unprofiled))
    return StepChange(
        before_us=old,
        after_us=new,
        margin_us=math.hypot(within, NORMAL * again),
        unprofiled=unprofiled,
        device_us=(_device(before), _device(after)),
        why_not=_why_not(before, after),
    )


def _time(fleet: Fleet, unprofiled: bool) -> float:
    return (fleet.unprofiled_us if unprofiled else None) or fleet.observed_us


def _steps(fleet: Fleet) -> list[float]:
    """Return the recorded time of each of the job's steps, µs: the median over its ranks."""
    times: defaultdict[int, list[float]] = defaultdict(list)
    for rank in fleet.ranks:
        for step in rank.of.steps:
            times[step.number].append((step.end - step.begin) / 1e3)
    return [statistics.median(times[number]) for number in fleet.steps if times[number]]


def _device(fleet: Fleet) -> float:
    """Return the device time of the busiest rank per step, without collectives, which wait for others."""
    return max((rank.of.busy_us for rank in fleet.ranks), default=0.0)


def _again(fleet: Fleet, time: float, unprofiled: bool) -> float:
    """Return the standard error of recording this state again, estimated as for one trace, of its busiest rank."""
    works = _device(fleet) / fleet.observed_us if fleet.observed_us else 0.0
    of_host = 0.0 if works >= BOUND_FROM else 1 - min(works, 1.0)
    return math.hypot(AGAIN * time, (HOST_AGAIN if unprofiled else STRETCH) * time * of_host)


def _why_not(before: Fleet, after: Fleet) -> str:
    if len(before.ranks) != len(after.ranks) and before.world_size != after.world_size:
        return f"The jobs have {len(before.ranks)} and {len(after.ranks)} ranks."
    if {rank.of.numbered for rank in before.ranks} != {rank.of.numbered for rank in after.ranks}:
        return "Steps were found in different ways, so a step of one isn't a step of the other."
    return ""


def _promise(before: Fleet, removed: Sequence[JobFinding], step: StepChange) -> Promise | None:
    """Return the replay's projection without the removed findings: exact for one or all, bounded for several."""
    real = [f for f in before.findings if not f.first.intended]
    projected = [f for f in removed if f.gain_us is not None and f.range_us is not None]
    if not projected or before.recoverable_us is None or before.recoverable_range_us is None or not before.baseline_us:
        return None
    best = max(projected, key=lambda f: f.gain_us or 0.0)
    saving, (low, high) = best.gain_us or 0.0, best.range_us or (0.0, 0.0)
    if len(removed) == len(real):
        saving, (low, high) = before.recoverable_us, before.recoverable_range_us
    elif len(removed) > 1:
        saving, high = (
            min(sum(f.gain_us or 0.0 for f in projected), before.recoverable_us),
            before.recoverable_range_us[1],
        )
    scale = step.before_us / before.baseline_us
    limits = (low * scale, max(high, saving) * scale)
    return Promise(saving_us=saving * scale, range_us=limits, kept=_promise_kept(*limits, step))


def _promise_kept(least: float, most: float, step: StepChange) -> PromiseOutcome:
    if step.why_not or step.margin_us > max(most, COARSE * step.before_us):
        return PromiseOutcome.UNKNOWN
    if step.saving_us + step.margin_us < least:
        return PromiseOutcome.LESS
    return PromiseOutcome.MORE if step.saving_us - step.margin_us > most else PromiseOutcome.YES


def _notes(before: Fleet, after: Fleet) -> Iterator[str]:
    for fleet, name in ((before, "before"), (after, "after")):
        if fleet.missing:
            yield f"The job {name} is missing the traces of {len(fleet.missing)} ranks."
        if not fleet.replayed:
            yield f"The job {name} can't be replayed, so the cost of its syncs to the job is unknown."
