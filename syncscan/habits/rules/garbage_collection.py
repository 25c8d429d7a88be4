"""Yield the habit for the collections that capture recorded on the steps' own threads.

Those of a generation that most steps collect are replayed. The few recorded steps don't show how often rarer ones
occur: they cost at most the difference of mean and median of the steps timed without the profiler.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.model.capture import Collection
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.rules.pages import advice_of

COLD = 1.4
"""Largest factor by which the rest of the step is longer after a collection, whose objects replace the thread's own in
the caches (measured: 1.2 to 1.4 in a small step on 2 cores of a virtual machine, 1.4 on an H200's host)."""

Collected = Mapping[ThreadInterval, Collection]
"""Collections by their interval on the trace's clock."""


def find(context: Context) -> Iterable[Habit]:
    steps = _by_step(context)
    usual = _usual(context, steps)
    rare = {interval: c for own in steps.values() for interval, c in own.items() if interval not in usual}
    seldom = _took_us(context, rare)
    most = _rare_us(context)
    cost = _took_us(context, usual) + (seldom if most is None else min(seldom, most))
    if cost < context.notable_us:
        return
    collected = {**usual, **rare}
    fewest = tuple(_at_least(context, steps, usual))
    most_removed = (*collected, *_slowed(context, steps))
    changes = tuple(Change(host=host, unstretched=True) for host in (tuple(usual), most_removed, fewest))
    evidence = [_collections(context, collected), *([_seldom(context, steps, rare, most)] if rare else [])]
    habit = context.habit(advice_of("garbage-collection"), [], cost, evidence, changes if usual else ())
    yield replace(habit, per_step=len(collected) / context.count)


def _by_step(context: Context) -> dict[int, Collected]:
    """Return the collections on the steps' own threads, by index of the step around them."""
    trace, base = context.trace, context.trace.info.base_ns
    tracks = {trace.tracks[step.track].tid: step.track for step in trace.steps}
    by_step: defaultdict[int, dict[ThreadInterval, Collection]] = defaultdict(dict)
    for collection in trace.info.capture.collections:
        begin, track = collection.begin_ns - base, tracks.get(str(collection.tid))
        place = int(context.step_of(begin))
        if track is None or place < 0 or not context.steps[place].holds(begin):
            continue
        end = min(collection.end_ns - base, context.steps[place].end)
        by_step[place][ThreadInterval(track, begin, end)] = collection
    return dict(by_step)


def _usual(context: Context, steps: Mapping[int, Collected]) -> Collected:
    """Return the collections of the generations that most steps collect; none for a single step."""
    often = Counter(generation for own in steps.values() for generation in {c.generation for c in own.values()})
    usual = {generation for generation, count in often.items() if 2 * count > context.count > 1}
    return {interval: c for own in steps.values() for interval, c in own.items() if c.generation in usual}


def _took_us(context: Context, collected: Collected) -> float:
    """Return how long these block the thread, in µs per step, as recorded; the profiler records nothing during them."""
    return sum(i.end - i.begin for i in collected) / context.count / 1e3


def _rare_us(context: Context) -> float | None:
    """Return what rare pauses add to the typical step, in µs; None if steps weren't timed one by one."""
    mean, typical = context.trace.info.capture.unprofiled_mean_us, context.trace.info.capture.unprofiled_step_us
    return max(0.0, mean - typical) if mean is not None and typical is not None and mean != typical else None


def _at_least(context: Context, steps: Mapping[int, Collected], usual: Collected) -> Iterable[ThreadInterval]:
    """Yield the part of each step's usual collections that every step has, as long as the least of them."""
    usual_by_step = [[interval for interval in by_interval if interval in usual] for by_interval in steps.values()]
    least = min((sum(i.end - i.begin for i in by_interval) for by_interval in usual_by_step), default=0)
    for by_interval in usual_by_step if len(steps) == context.count else ():
        left = least
        for track, begin, end in by_interval:
            yield ThreadInterval(track, begin, min(end, begin + left))
            left = max(0, left - (end - begin))


def _slowed(context: Context, steps: Mapping[int, Collected]) -> Iterable[ThreadInterval]:
    """Yield the most that a collection lengthens the rest of its step.

    It is at most as long as the collection, which read what replaced the thread's own data in the caches.
    """
    for place, by_interval in steps.items():
        took = sum(i.end - i.begin for i in by_interval)
        slower = (1 - 1 / COLD) * max(0.0, context.period_us * 1e3 - took)
        begin = context.steps[place].begin
        yield ThreadInterval(next(iter(by_interval)).track, begin, begin + int(min(slower, took)))


def _collections(context: Context, collected: Collected) -> str:
    lengths = [(c.generation, (c.end_ns - c.begin_ns) / 1e6) for c in collected.values()]
    generations = Counter(generation for generation, _ in lengths)
    counts = ", ".join(f"{g}: {generations[g] / context.count:.3g}" for g in sorted(generations))
    return (
        f"{len(collected) / context.count:.3g} collections per step (by generation {counts}) block its thread for "
        f"{duration(_took_us(context, collected))}, the longest {duration(1e3 * max(ms for _, ms in lengths))}"
    )


def _seldom(context: Context, steps: Mapping[int, Collected], rare: Collected, most: float | None) -> str:
    generations = sorted({c.generation for c in rare.values()})
    holding = sum(any(interval in rare for interval in own) for own in steps.values())
    rare_text = "" if most is None else f"; without the profiler rare pauses add {duration(most)} to the median step"
    return (
        f"{holding} of {context.count} recorded steps collect generation {', '.join(map(str, generations))}, which "
        f"doesn't show how often that happens{rare_text}"
    )
