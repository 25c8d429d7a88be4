"""Compare the analyses of two states of a program: syncs added, removed or changed, and the step time gained."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from syncscan.gate.habit_changes import habit_changes
from syncscan.gate.match import matched
from syncscan.gate.sites import Key, joined, sites_of
from syncscan.gate.step_change import difference, options, step_change
from syncscan.gate.unrelated import UNRELATED, unrelated
from syncscan.model.analysis import Analysis
from syncscan.model.diff import (
    Diff,
    DiffState,
    MovedWait,
    Promise,
    PromiseOutcome,
    Site,
    SiteChange,
    SiteStatus,
    StepChange,
)

LEAST = 0.01
"""Changes of a wait by less than this fraction of the step are ignored."""
COARSE = 0.05
"""Smallest gain, as a fraction of the step, that counts as verifiable if the step time isn't known better."""
CHANCE = 0.05
"""Probability by chance below which a site that isn't in every step counts as new or removed."""

Sites = dict[Key, Site]
_ORDER = (SiteStatus.NEW, SiteStatus.CHANGED, SiteStatus.GONE, SiteStatus.OCCASIONAL, SiteStatus.SAME)


def diff(before: Sequence[Analysis], after: Sequence[Analysis]) -> Diff:
    """Return the differences between two states of a program.

    Args:
        before: recordings of the earlier state, one or more.
    """
    step = step_change(before, after)
    old, new = _sites(before), _sites(after)
    steps = _steps(before), _steps(after)
    changes = [_change(one, other, step, steps) for one, other in _match(old, new)]
    changes.sort(key=lambda c: (_ORDER.index(c.change), c.site.intended, -_weight(c), c.site.first.id))
    removed = [c.before for c in changes if c.change is SiteStatus.GONE and c.before]
    different = unrelated(before, after, changes)
    return Diff(
        before=_state(before),
        after=_state(after),
        changes=tuple(changes),
        moved=tuple(_moved(changes, removed)),
        gone_wait_us=sum(site.wait_us for site in removed if not site.intended),
        step=step,
        promise=_promise(before, removed, step),
        habits=() if step.why_not else habit_changes(before, after),
        notes=(*((UNRELATED,) if different else ()), *_notes(before, after)),
        unrelated=different,
    )


def _state(side: Sequence[Analysis]) -> DiffState:
    info = side[0].trace.info
    return DiffState(
        paths=tuple(a.trace.info.path for a in side),
        steps=sum(a.step.count for a in side),
        device=info.devices[0] if info.devices else "",
        bound=side[0].step.bound.value,
    )


def _sites(side: Sequence[Analysis]) -> Sites:
    """Return the sites of all recordings of one state, merged by place."""
    sites: Sites = {}
    steps = 0
    for analysis in side:
        own, count = sites_of(analysis), max(1, analysis.step.count)
        grown: Sites = {}
        for site, other in matched(sites, own):
            earlier = joined([sites[k] for k in site]) if site else None
            later = joined([own[k] for k in other]) if other else None
            grown[(*site, *other)[0]] = _appended(earlier, steps, later, count)
        sites, steps = grown, steps + count
    return sites


def _appended(earlier: Site | None, steps: int, later: Site | None, count: int) -> Site:
    """Return a site of several recordings, extended by one more; it doesn't wait in recordings that don't have it."""
    known = [site for site in (earlier, later) if site]
    gains = [site.recoverable_us for site in known if site.recoverable_us is not None]
    compiled = [site.once_compiled_us for site in known if site.once_compiled_us is not None]
    seen = {**(earlier.seen if earlier else {}), **{steps + n: at for n, at in (later.seen if later else {}).items()}}
    return Site(
        findings=tuple(f for site in known for f in site.findings),
        steps=steps + count,
        seen=seen,
        bubble_us=statistics.fmean(site.bubble_us for site in known),
        recoverable_us=statistics.fmean(gains) if gains else None,
        once_compiled_us=statistics.fmean(compiled) if compiled else None,
        always=any(site.always for site in known),
    )


def _steps(side: Sequence[Analysis]) -> int:
    return sum(max(1, a.step.count) for a in side)


def _match(old: Sites, new: Sites) -> Iterator[tuple[Site | None, Site | None]]:
    for one, other in matched(old, new):
        yield joined([old[k] for k in one]) if one else None, joined([new[k] for k in other]) if other else None


def _change(before: Site | None, after: Site | None, step: StepChange, steps: tuple[int, int]) -> SiteChange:
    """Return the change of one place; `steps` are the numbers of steps of each state."""
    if before is None or after is None:
        return SiteChange(change=_gone_or_new(before, after, steps), before=before, after=after)
    often = not step.why_not and _more_often(before, after)
    long = not step.why_not and _longer(before, after, step)
    kind = SiteStatus.CHANGED if often or long else SiteStatus.SAME
    return SiteChange(change=kind, before=before, after=after, how_often=often, how_long=long)


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
    return one.median != other.median and abs(other.mean - one.mean) > difference(one, other)


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


def _promise(before: Sequence[Analysis], removed: Sequence[Site], step: StepChange) -> Promise | None:
    """Return what the earlier state's replay projected without the removed sites, as fractions of its step."""
    ids = {f.id for site in removed for f in site.findings}
    parts = []
    for analysis in before:
        present = [f"id:{f.id}" for f in analysis.findings if f.id in ids]
        if present and analysis.replayable and analysis.step.recoverable_us is not None:
            parts.append(_part(analysis, present))
    if not parts:
        return None
    saving, least, most = (statistics.fmean(column) * step.before_us for column in zip(*parts, strict=True))
    return Promise(saving_us=saving, range_us=(least, most), kept=_promise_kept(least, most, step))


def _part(analysis: Analysis, selectors: Sequence[str]) -> tuple[float, float, float]:
    """Return the saving and its range as fractions of the step; ids are matched literally, not as globs."""
    projection = analysis.whatif(*map(_literal, selectors))
    base = projection.baseline_us or 1.0
    low, high = projection.range_us
    return max(0.0, projection.saving_us) / base, max(0.0, base - high) / base, max(0.0, base - low) / base


def _literal(selector: str) -> str:
    return selector.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")


def _promise_kept(least: float, most: float, step: StepChange) -> PromiseOutcome:
    if step.why_not or step.margin_us > max(most, COARSE * step.before_us):
        return PromiseOutcome.UNKNOWN
    if step.saving_us + step.margin_us < least:
        return PromiseOutcome.LESS
    return PromiseOutcome.MORE if step.saving_us - step.margin_us > most else PromiseOutcome.YES


def _notes(before: Sequence[Analysis], after: Sequence[Analysis]) -> Iterator[str]:
    """Yield differences between the recordings that aren't the program's doing."""
    if options(before) != options(after):
        yield "They were recorded with different profiler options, which slow a host differently."
    lacking = [any(a.step.waits_withheld for a in side) for side in (before, after)]
    if any(lacking):
        yield "Some recordings don't show how long their waits last."
