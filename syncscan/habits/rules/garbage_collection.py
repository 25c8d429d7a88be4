"""Python's garbage collector runs on the step's thread.

## What it finds

Collections of Python's garbage collector on the step's own thread.

## How it shows in the trace

In no slice: capture notes each collection by `gc.callbacks` in the recorded steps, with its generation and what it
took.

## Example

```python
import gc

for _ in range(3):
    train(x, labels)
    gc.collect()
```

## Use instead

```python
import gc

gc.collect()
gc.freeze()
for _ in range(3):
    train(x, labels)
```

## What it would save

The step is replayed without collections of a generation that most steps collect. Of rarer ones the recorded steps
don't tell how often they come: an upper bound. At most the rest of the step gets shorter too, for a collection leaves
cold caches behind.

## References

- https://docs.python.org/3/library/gc.html#gc.freeze
- sample_traces/programs/stalls.py
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.model.capture import Collection
from syncscan.model.habit import Advice, Area, Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.units import duration

ADVICE = Advice(
    rule="garbage-collection",
    area=Area.HOST,
    title="Python's garbage collector runs in the step",
    why="A collection stops the thread that launches the work while it goes through the program's objects.",
    fix=(
        "gc.freeze() once all is built, so that its objects aren't gone through again; a higher gc.set_threshold; or "
        "gc.disable() and one gc.collect() every some hundred steps. No gc.collect() in the loop."
    ),
    when_fine="When cycles of objects hold memory that the next step needs.",
)

COLD = 1.4
"""Behind a collection the thread finds none of its own in the caches: the rest of the step takes so many times as long
at most (measured: 1.2 to 1.4 in a small step on 2 cores of a virtual machine, 1.4 on an H200's host)."""

Collected = Mapping[ThreadInterval, Collection]
"""Collections by where they lie on the trace's clock."""


def find(context: Context) -> Iterable[Habit]:
    """Collections on the steps' own thread, as capture saw them.

    Those of a generation that most of the steps collect are replayed. Of rarer ones the few recorded steps don't tell
    how often they come: they cost at most what the mean of the steps that were timed without the profiler lies above
    the median.
    """
    steps = _by_step(context)
    usual = _usual(context, steps)
    rare = {interval: c for mine in steps.values() for interval, c in mine.items() if interval not in usual}
    seldom = _took_us(context, rare)
    most = _rare_us(context)
    cost = _took_us(context, usual) + (seldom if most is None else min(seldom, most))
    if cost < context.notable_us:
        return
    found = {**usual, **rare}
    fewest = tuple(_at_least(context, steps, usual))
    most_gone = (*found, *_slowed(context, steps))
    changes = tuple(Change(host=host, unstretched=True) for host in (tuple(usual), most_gone, fewest))
    evidence = [_collections(context, found), *([_seldom(context, steps, rare, most)] if rare else [])]
    habit = context.habit(ADVICE, [], cost, evidence, changes if usual else ())
    yield replace(habit, per_step=len(found) / context.count)


def _by_step(context: Context) -> dict[int, Collected]:
    """The collections on the steps' own threads, by the place of the step that holds them."""
    trace, base = context.trace, context.trace.info.base_ns
    tracks = {trace.tracks[step.track].tid: step.track for step in trace.steps}
    found: defaultdict[int, dict[ThreadInterval, Collection]] = defaultdict(dict)
    for collection in trace.info.capture.collections:
        begin, track = collection.begin_ns - base, tracks.get(str(collection.tid))
        place = int(context.step_of(begin))
        if track is None or place < 0 or not context.steps[place].holds(begin):
            continue
        end = min(collection.end_ns - base, context.steps[place].end)
        found[place][ThreadInterval(track, begin, end)] = collection
    return dict(found)


def _usual(context: Context, steps: Mapping[int, Collected]) -> Collected:
    """The collections of the generations that most of the steps collect; none of a single step."""
    often = Counter(generation for mine in steps.values() for generation in {c.generation for c in mine.values()})
    usual = {generation for generation, count in often.items() if 2 * count > context.count > 1}
    return {interval: c for mine in steps.values() for interval, c in mine.items() if c.generation in usual}


def _took_us(context: Context, collected: Collected) -> float:
    """How long these hold the thread, in µs a step: as recorded, for the profiler records nothing in them."""
    return sum(i.end - i.begin for i in collected) / context.count / 1e3


def _rare_us(context: Context) -> float | None:
    """What pauses of few steps add to the typical one, in µs; None where no steps were timed one by one."""
    mean, typical = context.trace.info.capture.unprofiled_mean_us, context.trace.info.capture.unprofiled_step_us
    return max(0.0, mean - typical) if mean is not None and typical is not None and mean != typical else None


def _at_least(context: Context, steps: Mapping[int, Collected], usual: Collected) -> Iterable[ThreadInterval]:
    """Of each step's usual collections as much as the step with the least of them has; nothing where one has none."""
    each = [[interval for interval in mine if interval in usual] for mine in steps.values()]
    least = min((sum(i.end - i.begin for i in mine) for mine in each), default=0)
    for mine in each if len(steps) == context.count else ():
        left = least
        for track, begin, end in mine:
            yield ThreadInterval(track, begin, min(end, begin + left))
            left = max(0, left - (end - begin))


def _slowed(context: Context, steps: Mapping[int, Collected]) -> Iterable[ThreadInterval]:
    """What the rest of each step with a collection takes longer at most: no longer than the collection itself did, for
    it has read what it put in the place of the thread's own.
    """
    for place, mine in steps.items():
        took = sum(i.end - i.begin for i in mine)
        slower = (1 - 1 / COLD) * max(0.0, context.period_us * 1e3 - took)
        begin = context.steps[place].begin
        yield ThreadInterval(next(iter(mine)).track, begin, begin + int(min(slower, took)))


def _collections(context: Context, found: Collected) -> str:
    lengths = [(c.generation, (c.end_ns - c.begin_ns) / 1e6) for c in found.values()]
    generations = Counter(generation for generation, _ in lengths)
    each = ", ".join(f"{g}: {generations[g] / context.count:.3g}" for g in sorted(generations))
    return (
        f"{len(found) / context.count:.3g} collections a step (by generation {each}) hold its thread for "
        f"{duration(_took_us(context, found))}, the longest {duration(1e3 * max(ms for _, ms in lengths))}"
    )


def _seldom(context: Context, steps: Mapping[int, Collected], rare: Collected, most: float | None) -> str:
    generations = sorted({c.generation for c in rare.values()})
    holding = sum(any(interval in rare for interval in mine) for mine in steps.values())
    known = "" if most is None else f"; without the profiler rare pauses add {duration(most)} to the median step"
    return (
        f"{holding} of {context.count} recorded steps collect generation {', '.join(map(str, generations))}, which "
        f"doesn't tell how often that comes{known}"
    )
