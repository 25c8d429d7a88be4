"""Make one list of remedies out of sets of syncs and habits: by gain, each replayed on top of those above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from syncscan.model.finding import Confidence, Finding
from syncscan.model.habit import Basis, Change, Habit
from syncscan.model.projection import Remedy, RemovalGroup
from syncscan.model.states import States
from syncscan.model.step import REPEATABILITY
from syncscan.whatif.calibrated_step import CalibratedStep
from syncscan.whatif.projector import Projector
from syncscan.whatif.replayed_steps import NO_CHANGE, both

WORTH = 0.05
"""The least part of the step that a set of changes across kinds gains beyond the best of them, or it isn't named."""
KEEPS = "Syncs keep the network from being compiled"
LISTED = 8
"""Remedies that are replayed on top of one another, for a habit's needs a graph of its own."""


def remedies_of(
    projector: Projector,
    findings: Sequence[Finding],
    groups: Sequence[RemovalGroup],
    habits: Sequence[Habit],
    states: States | None = None,
    compiled: Change = NO_CHANGE,
) -> tuple[Remedy, ...]:
    """Return what is worth changing, the largest gain first; upper bounds are behind all that was replayed or sampled.

    What samples alone show has no place in the trace, so that it can't be replayed on top of the entries above it.

    `compiled` is what a compile changes of the step without the syncs that break it. Empty where the step can't be
    replayed.
    """
    if not projector.replayable:
        return ()
    step = projector.fixed
    if not step.before.period:
        return ()
    by_id = {f.id: f for f in findings}
    candidates = [*_syncs(step, by_id, groups), *_habits(habits), *_pair(step, by_id, states, compiled)]
    replayed = sorted((c for c in candidates if c.basis is Basis.REPLAY), key=_order)[:LISTED]
    sampled = [c for c in candidates if c.basis is Basis.SAMPLES]
    bounds = sorted((c for c in candidates if c.basis is Basis.UPPER_BOUND), key=_order)
    gaining = sorted([*_on_top(projector, step, replayed), *sampled], key=lambda remedy: -remedy.alone_us)
    return (*gaining, *bounds)


def _order(remedy: Remedy) -> tuple[float, str, tuple[str, ...]]:
    return -remedy.alone_us, remedy.habit, remedy.findings


def _syncs(step: CalibratedStep, findings: dict[str, Finding], groups: Sequence[RemovalGroup]) -> Iterator[Remedy]:
    base = step.before.period
    for group in groups:
        members = [findings[i] for i in group.ids]
        removed = frozenset(step.number[i] for i in group.ids)
        low, high = step.range(removed)
        gain = max(0.0, (base - step.after(removed).period) * step.unit)
        yield Remedy(
            findings=group.ids,
            what=members[0].title,
            alone_us=gain,
            range_us=(max(0.0, base * step.unit - high), max(gain, base * step.unit - low)),
            after_us=None,
            basis=Basis.REPLAY,
            confidence=max((f.confidence for f in members), key=list(Confidence).index),
        )


def _pair(
    step: CalibratedStep, findings: dict[str, Finding], states: States | None, compiled: Change
) -> Iterator[Remedy]:
    """Yield the syncs that keep the network from being compiled, with that compile, if that gains what neither does."""
    if states is None or states.pair is None:
        return
    base, pair = states.baseline_us, states.pair
    gain = base - pair.us
    if gain - max(*states.alone_us, 0.0) < WORTH * base:
        return
    members = [findings[i] for i in states.breaking]
    yield Remedy(
        findings=states.breaking,
        launches=pair.launches,
        change=compiled,
        what=KEEPS,
        alone_us=gain,
        range_us=(max(0.0, base - pair.range_us[1]), max(0.0, base - pair.range_us[0])),
        after_us=None,
        basis=Basis.REPLAY,
        confidence=max((f.confidence for f in members), key=list(Confidence).index),
    )


def _habits(habits: Sequence[Habit]) -> Iterator[Remedy]:
    for habit in habits:
        if habit.basis is None or (habit.basis is Basis.REPLAY and not habit.recoverable_us):
            continue
        yield Remedy(
            habit=habit.id,
            change=habit.changes[0] if habit.changes else NO_CHANGE,
            what=habit.title,
            alone_us=habit.recoverable_us or 0.0,
            range_us=habit.recoverable_range_us or (0.0, 0.0),
            after_us=None,
            basis=habit.basis,
            confidence=habit.confidence,
        )


def _on_top(projector: Projector, step: CalibratedStep, candidates: Sequence[Remedy]) -> Iterator[Remedy]:
    """Yield each remedy with its gain on top of those before it; one that gains nothing more is kept, and says so.

    On top of nothing the first gains what it gains alone, which may be less than its replay: what a graph of the step
    saves of another habit is counted as that one's.
    """
    removed, change = frozenset[int](), NO_CHANGE
    before = step.before.period
    least = REPEATABILITY * before
    for place, remedy in enumerate(candidates):
        removed |= {step.number[id] for id in remedy.findings}
        change = both(change, remedy.change)
        replayed = projector.then(removed, change) if place else before - remedy.alone_us / step.unit
        after = min(before, max(0.0, replayed))
        yield replace(remedy, after_us=(before - after) * step.unit if before - after >= least else 0.0)
        before = after
