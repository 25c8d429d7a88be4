"""From the analyses of two states of a program to their Diff: what came, went or changed, and what the step gained."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from syncscan.gate.habit_changes import habit_changes
from syncscan.gate.match import matched
from syncscan.gate.sites import Key, joined, sites_of
from syncscan.gate.steps import difference, options, step_change
from syncscan.model.analysis import Analysis
from syncscan.model.diff import Change, Diff, Kept, MovedWait, Promise, Site, SiteChange, State, StepChange

LEAST = 0.01
"""A wait that changed by less than this part of the step is no change, whatever its spread."""
COARSE = 0.05
"""Whether a smaller gain than this part of the step came can't be told where the step's time isn't known better."""
CHANCE = 0.05
"""A site that isn't in every step is new or gone where chance would show it so seldom."""

Sites = dict[Key, Site]
_ORDER = (Change.NEW, Change.CHANGED, Change.GONE, Change.OCCASIONAL, Change.SAME)


def diff(before: Sequence[Analysis], after: Sequence[Analysis]) -> Diff:
    """What differs between two states of a program.

    Args:
        before: recordings of the earlier state, one or more.
        after: of the later.
    """
    step = step_change(before, after)
    old, new = _sites(before), _sites(after)
    steps = _steps(before), _steps(after)
    changes = [_change(one, other, step, steps) for one, other in _matched(old, new)]
    changes.sort(key=lambda c: (_ORDER.index(c.change), c.site.intended, -_weight(c), c.site.first.id))
    gone = [c.before for c in changes if c.change is Change.GONE and c.before]
    return Diff(
        before=_state(before),
        after=_state(after),
        changes=tuple(changes),
        moved=tuple(_moved(changes, gone)),
        gone_wait_us=sum(site.wait_us for site in gone if not site.intended),
        step=step,
        promise=_promise(before, gone, step),
        habits=() if step.why_not else habit_changes(before, after),
        notes=tuple(_notes(before, after)),
    )


def _state(side: Sequence[Analysis]) -> State:
    info = side[0].trace.info
    return State(
        paths=tuple(a.trace.info.path for a in side),
        steps=sum(a.step.count for a in side),
        device=info.devices[0] if info.devices else "",
        bound=side[0].step.bound.value,
    )


def _sites(side: Sequence[Analysis]) -> Sites:
    """The sites of all recordings of one state, the same place together."""
    sites: Sites = {}
    steps = 0
    for analysis in side:
        found, count = sites_of(analysis), max(1, analysis.step.count)
        grown: Sites = {}
        for one, other in matched(sites, found):
            earlier = joined([sites[k] for k in one]) if one else None
            later = joined([found[k] for k in other]) if other else None
            grown[(*one, *other)[0]] = _appended(earlier, steps, later, count)
        sites, steps = grown, steps + count
    return sites


def _appended(earlier: Site | None, steps: int, later: Site | None, count: int) -> Site:
    """A site of some recordings and of one more; it waits in none of the steps of those that lack it."""
    known = [site for site in (earlier, later) if site]
    gains = [site.recoverable_us for site in known if site.recoverable_us is not None]
    seen = {**(earlier.seen if earlier else {}), **{steps + n: at for n, at in (later.seen if later else {}).items()}}
    return Site(
        findings=tuple(f for site in known for f in site.findings),
        steps=steps + count,
        seen=seen,
        bubble_us=statistics.fmean(site.bubble_us for site in known),
        recoverable_us=statistics.fmean(gains) if gains else None,
        always=any(site.always for site in known),
    )


def _steps(side: Sequence[Analysis]) -> int:
    return sum(max(1, a.step.count) for a in side)


def _matched(old: Sites, new: Sites) -> Iterator[tuple[Site | None, Site | None]]:
    for one, other in matched(old, new):
        yield joined([old[k] for k in one]) if one else None, joined([new[k] for k in other]) if other else None


def _change(before: Site | None, after: Site | None, step: StepChange, steps: tuple[int, int]) -> SiteChange:
    """What became of one place; `steps` are those of each state."""
    if before is None or after is None:
        return SiteChange(change=_gone_or_new(before, after, steps), before=before, after=after)
    often = not step.why_not and _more_often(before, after)
    long = not step.why_not and _longer(before, after, step)
    kind = Change.CHANGED if often or long else Change.SAME
    return SiteChange(change=kind, before=before, after=after, how_often=often, how_long=long)


def _gone_or_new(before: Site | None, after: Site | None, steps: tuple[int, int]) -> Change:
    """Of a place that one of the states lacks; it may be one that only some steps come to."""
    seen, own = (before, steps[0]) if before else (after, steps[1])
    if seen and not seen.always:
        hits = len(seen.seen)
        if _chosen(own, hits) - _chosen(sum(steps), hits) > math.log(CHANCE):  # all in one state: Fisher's exact test
            return Change.OCCASIONAL
    return Change.GONE if before else Change.NEW


def _chosen(of: int, some: int) -> float:
    """The logarithm of the number of ways to choose some of them."""
    return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)


def _more_often(before: Site, after: Site) -> bool:
    """Whether it waits more or less often than its number differs from step to step."""
    one, other = before.counts, after.counts
    return one.median != other.median and abs(other.mean - one.mean) > difference(one, other)


def _longer(before: Site, after: Site, step: StepChange) -> bool:
    """Whether it waits longer or shorter by more than its steps and recordings differ."""
    noise = math.hypot(difference(before.waits, after.waits), step.margin_us)
    return abs(after.wait_us - before.wait_us) > max(noise, LEAST * max(step.before_us, step.after_us))


def _weight(change: SiteChange) -> float:
    before, after = (site.wait_us if site else 0.0 for site in (change.before, change.after))
    return abs(after - before) if change.change is Change.CHANGED else max(before, after)


def _moved(changes: Sequence[SiteChange], gone: Sequence[Site]) -> Iterator[MovedWait]:
    """Where the wait of what is gone went: to places that wait longer now, in proportion."""
    lost = sum(site.wait_us for site in gone)
    longer = [c for c in changes if c.change is Change.NEW or (c.how_long and _rise(c) > 0)]
    rises = sum(map(_rise, longer))
    for change in sorted(longer, key=_rise, reverse=True):
        if change.after and gone and (us := _rise(change) * min(1.0, lost / rises) if rises else 0.0) > LEAST * lost:
            before = change.before.wait_us if change.before else 0.0
            yield MovedWait(to=change.after, before_us=before, after_us=change.after.wait_us, us=us)


def _rise(change: SiteChange) -> float:
    before, after = (site.wait_us if site else 0.0 for site in (change.before, change.after))
    return after - before


def _promise(before: Sequence[Analysis], gone: Sequence[Site], step: StepChange) -> Promise | None:
    """What replaying the earlier state's steps without what is gone had said, as parts of its step."""
    ids = {f.id for site in gone for f in site.findings}
    parts = []
    for analysis in before:
        present = [f"id:{f.id}" for f in analysis.findings if f.id in ids]
        if present and analysis.replayable and analysis.step.recoverable_us is not None:
            parts.append(_part(analysis, present))
    if not parts:
        return None
    saving, least, most = (statistics.fmean(column) * step.before_us for column in zip(*parts, strict=True))
    return Promise(saving_us=saving, range_us=(least, most), kept=_kept(least, most, step))


def _part(analysis: Analysis, selectors: Sequence[str]) -> tuple[float, float, float]:
    """The saving and its range as parts of the step; an id is taken as it is, whatever a glob would make of it."""
    projection = analysis.whatif(*map(_literal, selectors))
    base = projection.baseline_us or 1.0
    low, high = projection.range_us
    return max(0.0, projection.saving_us) / base, max(0.0, base - high) / base, max(0.0, base - low) / base


def _literal(selector: str) -> str:
    return selector.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]")


def _kept(least: float, most: float, step: StepChange) -> Kept:
    if step.why_not or step.margin_us > max(most, COARSE * step.before_us):
        return Kept.UNKNOWN
    if step.saving_us + step.margin_us < least:
        return Kept.LESS
    return Kept.MORE if step.saving_us - step.margin_us > most else Kept.YES


def _notes(before: Sequence[Analysis], after: Sequence[Analysis]) -> Iterator[str]:
    """What differs between the recordings, but isn't the program's doing."""
    if options(before) != options(after):
        yield "They were recorded with different options of the profiler, which slow a host differently."
    lacking = [any(a.step.waits_withheld for a in side) for side in (before, after)]
    if any(lacking):
        yield "Not all recordings tell how long their waits last."
