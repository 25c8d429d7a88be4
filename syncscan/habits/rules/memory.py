"""Find what memory costs the host: allocations in each step, garbage collections, and pages that are touched first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.rules.sampled_work import WorkKind, by_phase, gained, kinds
from syncscan.model.arrays import distinct, median
from syncscan.model.capture import Collection
from syncscan.model.duration import duration
from syncscan.model.finding import Confidence
from syncscan.model.habit import Change, Habit, SampledTime
from syncscan.model.host import HostNode, SampledHost
from syncscan.model.interval import ThreadInterval
from syncscan.model.runtime_calls import allocates, api_name, frees, pins, unmaps
from syncscan.model.slice_names import is_loader
from syncscan.model.trace import Category

LEAST_CALLS = 2
"""Fewest calls per step; a single one may be a straggler."""


def allocation_storm(context: Context) -> Iterable[Habit]:
    """Yield the habit if most steps after the first allocate device memory or pin host memory.

    Calls that a sync's finding counts aren't counted again: those that waited for the device, or that free memory.
    Calls of a merely informational finding count.
    """
    rows = _calls(context)
    if not rows or not _steady(context, rows):
        return
    took = context.length_us(rows) * context.host_scale
    if took < context.notable_us:
        return
    name = context.trace.name
    freeing = {call for call in context.sync_calls if frees(name(call)) or unmaps(name(call))}
    given_back = [f for f in context.findings if any(freeing.intersection(o.calls) for o in f.occurrences)]
    yield context.habit(
        "allocation-storm",
        rows,
        took,
        _calls_evidence(context, rows, took, [f.id for f in given_back]),
        [Change(host=tuple(map(context.interval, rows)), calls=tuple(rows))],
        Confidence.HIGH if given_back else Confidence.MEDIUM,
    )


def _calls(context: Context) -> list[int]:
    s, trace = context.trace.slices, context.trace
    calling = (Category.RUNTIME, Category.DRIVER)
    rows = [
        row
        for category in calling
        for row in context.rows(category, lambda name: allocates(name) and not unmaps(name), main=False)
    ]
    if not rows:
        return []
    counted = {c for f in context.findings if not f.intended for o in f.occurrences for c in o.calls}
    launching = set(distinct(s.track[context.launch_calls]).tolist())
    rows = [row for row in rows if row not in counted and int(s.track[row]) in launching]
    return sorted((r for r in rows if not (pins(trace.name(r)) and _pins_a_batch(context, r))), key=lambda r: s.ts[r])


def _pins_a_batch(context: Context, row: int) -> bool:
    """Return whether `pin_memory` or a loader pins, which is another habit or on the loader's own thread."""
    return context.op(row) in ("aten::pin_memory", "aten::_pin_memory") or any(map(is_loader, context.scope(row)))


def _steady(context: Context, rows: Sequence[int]) -> bool:
    """Return whether most steps after the first recorded one make such calls; a single step proves nothing."""
    starts = np.sort(context.trace.slices.ts[list(rows)])
    counts = [int(np.subtract(*np.searchsorted(starts, [end, begin]))) for begin, end in context.steps]
    return len(counts) > 1 and median(counts[1:]) >= LEAST_CALLS


def _calls_evidence(context: Context, rows: Sequence[int], took: float, given_back: Sequence[str]) -> list[str]:
    names = Counter(api_name(context.trace.name(row)) for row in rows)
    calls = ", ".join(f"{name}: {count / context.count:.3g}" for name, count in names.most_common(3))
    sentences = [f"driver calls per step that allocate memory: {calls}; they take {duration(took)} of host time"]
    if given_back:
        sentences.append(f"memory is freed in the steps, a sync of its own: {', '.join(given_back[:3])}")
    return sentences


COLD = 1.4
"""Largest factor by which the rest of the step is longer after a collection, whose objects replace the thread's own in
the caches (measured: 1.2 to 1.4 in a small step on 2 cores of a virtual machine, 1.4 on an H200's host)."""

Collected = Mapping[ThreadInterval, Collection]
"""Collections by their interval on the trace's clock."""


def garbage_collection(context: Context) -> Iterable[Habit]:
    """Yield the habit for the collections that capture recorded on the steps' own threads.

    Those of a generation that most steps collect are replayed. The few recorded steps don't show how often rarer ones
    occur: they cost at most the difference of mean and median of the steps timed without the profiler.
    """
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
    habit = context.habit("garbage-collection", [], cost, evidence, changes if usual else ())
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


SPREAD = (0.6, 1.75)
"""Range of a page's cost, relative to touching fresh pages right after the samples: what is written and what else is in
the caches matters (1.1 to 1.6 times as much in torch.ones and torch.stack of 40 MB, glibc 2.36, 2 cores, a virtual
machine)."""
IN_HUGE = 512
"""Number of small pages whose cost bounds that of clearing a huge page, which they fill (x86-64: 2 MB, 4 kB)."""
PLACES = 3
"""Number of lines named in the evidence."""
LEAST_PART = 0.05
"""Least share of the pages for a line to be named."""
FILLING = 0.25
"""Least share of a line's time for its pages from which on it does little else, and all its time may be theirs: they
took 0.57 to 0.75 of such lines on 2 cores, and on an H200's host, where 16 threads fill a buffer, 0.52 by their price.
Other lines mostly do something else."""


class Touched(msgspec.Struct, frozen=True):
    """Pages that a step's thread touches first, by nodes of the sampled tree, without those of other habits."""

    pages: tuple[float, ...]
    page_us: float
    system_us: float
    """Time in system code meanwhile; 0 if unknown."""
    filling_us: float
    """All time of the lines that do little else."""
    huge: float
    """Upper bound of the number of huge pages."""

    @property
    def surely_us(self) -> float:
        """Least cost of this many small pages."""
        return SPREAD[0] * sum(self.pages) * self.page_us

    @property
    def likely_us(self) -> float:
        """The system's time, limited to the most that this many pages can cost; their price if it is unknown.

        It was all that reused buffers saved a single thread: 22.6 of 22.5 ms in torch.stack of 38 MB, 12.1 of 12.4 with
        numpy's huge pages (2 cores, a virtual machine).
        """
        small, huge = sum(self.pages) - self.huge, self.huge * IN_HUGE
        if not self.system_us:
            return sum(self.pages) * self.page_us
        return max(self.surely_us, min(self.system_us, SPREAD[1] * (small + huge) * self.page_us))

    @property
    def most_us(self) -> float:
        """All time of lines that do little else, and of freeing the memory, which is at most that of touching it.

        Other threads that fill the same buffer touch pages too, delay each other, and are waited for in that line.
        """
        return max(SPREAD[1] * self.likely_us, self.filling_us + self.likely_us)


def first_touch(context: Context) -> Iterable[Habit]:
    """Yield the habit for pages that the step's thread touched first while sampled, by the time they took."""
    sampled = context.sampled
    touched = _touched(sampled) if sampled else None
    if sampled is None or touched is None or touched.likely_us < context.notable_us:
        return
    low, likely, high = touched.surely_us, touched.likely_us, touched.most_us
    habit = context.habit("first-touch", [], min(high, context.period_us), _pages_evidence(context, sampled, touched))
    yield gained(context, replace(habit, per_step=1.0, sampled=_placed(sampled, touched)), likely, low, high)


def _placed(sampled: SampledHost, touched: Touched) -> SampledTime:
    """Return the likely time, spread over phases as the pages are."""
    page_us = touched.likely_us / sum(touched.pages)
    pairs = zip(sampled.nodes, touched.pages, strict=True)
    phases = by_phase((node.phase, n * page_us) for node, n in pairs)
    most = max(zip(touched.pages, sampled.nodes, strict=True), key=lambda pair: pair[0])[1]
    own = sampled.in_program(most)
    return SampledTime("touches fresh memory", phases, line=own.place if own else "")


def _touched(sampled: SampledHost) -> Touched | None:
    used = sampled.used
    if used is None or used.fault_us is None:
        return None
    elsewhere = (WorkKind.LOADING, WorkKind.COLLATING)
    own = [kind not in elsewhere for kind in kinds(sampled.nodes)]
    pages = tuple(n if counts else 0.0 for n, counts in zip(used.faults_in, own, strict=True))
    if not sum(pages):
        return None
    touching = [max(n * used.fault_us, us) for n, us in zip(pages, used.touching_us, strict=True)]
    return Touched(
        pages=pages,
        page_us=used.fault_us,
        system_us=sum(us for us, n in zip(used.touching_us, pages, strict=True) if n),
        filling_us=sum(
            node.self_us
            for node, us in zip(sampled.nodes, touching, strict=True)
            if us and us >= FILLING * node.self_us
        ),
        huge=min(sum(pages), used.huge),
    )


def _pages_evidence(context: Context, sampled: SampledHost, touched: Touched) -> list[str]:
    pages, lines = sum(touched.pages), dict[str, float]()
    for number, n in enumerate(touched.pages):
        place = _place(sampled, sampled.nodes[number])
        lines[place] = lines.get(place, 0.0) + n
    most = sorted(lines, key=lambda place: -lines[place])[:PLACES]
    lines_text = ", ".join(
        f"{place} ({lines[place] / pages:.0%})" for place in most if lines[place] >= LEAST_PART * pages
    )
    took = f"{duration(touched.likely_us)} ({touched.likely_us / context.period_us:.0%} of the step)"
    how = "in the kernel of the OS meanwhile" if touched.system_us else f"at {touched.page_us:.2f} µs each"
    huge = f", {touched.huge:.0f} of them huge" if touched.huge >= LEAST_PART * pages else ""
    return [f"{pages:.0f} pages per step are touched for the first time{huge}: {took} {how}", f"in {lines_text}"]


def _place(sampled: SampledHost, node: HostNode) -> str:
    """Return the program's line that led to this node, or the node's own line."""
    of = sampled.in_program(node) or node
    return f"{of.place} {of.function}"
