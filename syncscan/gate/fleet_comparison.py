"""From two states of a job, a Fleet each, to what differs: places over ranks, the step, what had been projected."""

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
from syncscan.gate.steps import AGAIN, HOST_AGAIN, NORMAL, STRETCH, difference
from syncscan.model.diff import Change, Kept, Promise, Spread, StepChange
from syncscan.model.fleet import Fleet, JobFinding
from syncscan.model.fleet_diff import FleetDiff, JobChange, JobSite, JobState
from syncscan.model.step import BOUND_FROM

_ORDER = (Change.NEW, Change.CHANGED, Change.GONE, Change.SAME)


def diff_fleets(before: Fleet, after: Fleet) -> FleetDiff:
    """What differs between two states of a job.

    Args:
        before: the earlier.
        after: the later.
    """
    step = _step_change(before, after)
    changes = [_change(one, other, step) for one, other in _pairs(before, after)]
    changes.sort(key=lambda c: (_ORDER.index(c.change), c.site.intended, -c.site.wait_us, c.site.first.id))
    gone = [c.before for c in changes if c.change is Change.GONE and c.before]
    return FleetDiff(
        before=_state(before),
        after=_state(after),
        changes=tuple(changes),
        step=step,
        promise=_promise(before, [f for site in gone for f in site.findings if not f.first.intended], step),
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
        yield _joined(before, old, one), _joined(after, new, other)


def _joined(fleet: Fleet, sites: dict[Key, tuple[JobFinding, ...]], keys: Sequence[Key]) -> JobSite | None:
    """Several sites as one: what one state says line by line the other may know by its function alone."""
    found = [f for key in keys for f in sites[key]]
    if not found:
        return None
    found.sort(key=lambda f: -(f.wait_us or 0.0))
    often = most_often(fleet)
    gains = [f.gain_us for f in found if f.gain_us is not None]
    return JobSite(
        findings=tuple(found),
        ranks=tuple(sorted({rank for f in found for rank in f.ranks})),
        per_step=sum(often.get(f.id, f.first.per_step) for f in found),
        wait_us=sum(f.wait_us or 0.0 for f in found),
        gain_us=max(gains, default=None),
    )


def _change(before: JobSite | None, after: JobSite | None, step: StepChange) -> JobChange:
    if before is None or after is None:
        return JobChange(change=Change.GONE if before else Change.NEW, before=before, after=after)
    often = abs(after.per_step - before.per_step) > MORE
    noise = max(step.margin_us, LEAST * max(step.before_us, step.after_us))
    long = not step.why_not and abs(after.wait_us - before.wait_us) > noise
    ranks = before.ranks != after.ranks and not step.why_not
    kind = Change.CHANGED if often or long or ranks else Change.SAME
    return JobChange(change=kind, before=before, after=after, how_often=often, how_long=long, other_ranks=ranks)


def _step_change(before: Fleet, after: Fleet) -> StepChange:
    """The job's step: without the profiler where both know that time, else as recorded."""
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
    """What each of the job's steps took as recorded, µs: the middle of its ranks."""
    times: defaultdict[int, list[float]] = defaultdict(list)
    for rank in fleet.ranks:
        for step in rank.of.steps:
            times[step.number].append((step.end - step.begin) / 1e3)
    return [statistics.median(times[number]) for number in fleet.steps if times[number]]


def _device(fleet: Fleet) -> float:
    """How long the busiest rank's device works in a step, collectives apart: those wait for others."""
    return max((rank.of.busy_us for rank in fleet.ranks), default=0.0)


def _again(fleet: Fleet, time: float, unprofiled: bool) -> float:
    """The standard error that recording this state again would show: as of one trace, of its busiest rank."""
    works = _device(fleet) / fleet.observed_us if fleet.observed_us else 0.0
    of_host = 0.0 if works >= BOUND_FROM else 1 - min(works, 1.0)
    return math.hypot(AGAIN * time, (HOST_AGAIN if unprofiled else STRETCH) * time * of_host)


def _why_not(before: Fleet, after: Fleet) -> str:
    if len(before.ranks) != len(after.ranks) and before.world_size != after.world_size:
        return f"The jobs have {len(before.ranks)} and {len(after.ranks)} ranks."
    if {rank.of.numbered for rank in before.ranks} != {rank.of.numbered for rank in after.ranks}:
        return "Steps were found in different ways, so that a step of one isn't a step of the other."
    return ""


def _promise(before: Fleet, gone: Sequence[JobFinding], step: StepChange) -> Promise | None:
    """What the replay had said of what is gone: of one finding or of all exactly, of some between the two."""
    real = [f for f in before.findings if not f.first.intended]
    known = [f for f in gone if f.gain_us is not None and f.range_us is not None]
    if not known or before.recoverable_us is None or before.recoverable_range_us is None or not before.baseline_us:
        return None
    best = max(known, key=lambda f: f.gain_us or 0.0)
    saving, (low, high) = best.gain_us or 0.0, best.range_us or (0.0, 0.0)
    if len(gone) == len(real):
        saving, (low, high) = before.recoverable_us, before.recoverable_range_us
    elif len(gone) > 1:
        saving, high = min(sum(f.gain_us or 0.0 for f in known), before.recoverable_us), before.recoverable_range_us[1]
    scale = step.before_us / before.baseline_us
    limits = (low * scale, max(high, saving) * scale)
    return Promise(saving_us=saving * scale, range_us=limits, kept=_kept(*limits, step))


def _kept(least: float, most: float, step: StepChange) -> Kept:
    if step.why_not or step.margin_us > max(most, COARSE * step.before_us):
        return Kept.UNKNOWN
    if step.saving_us + step.margin_us < least:
        return Kept.LESS
    return Kept.MORE if step.saving_us - step.margin_us > most else Kept.YES


def _notes(before: Fleet, after: Fleet) -> Iterator[str]:
    for fleet, name in ((before, "before"), (after, "after")):
        if fleet.missing:
            yield f"The job {name} lacks the traces of {len(fleet.missing)} of its ranks."
        if not fleet.replayed:
            yield f"The job {name} can't be replayed: what its syncs cost the job isn't known."
