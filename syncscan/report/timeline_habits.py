"""Draw habits on the threads of the timeline: pauses where the trace has them, and likely places of what was sampled.

Samples tell how long a habit takes and in which phase, but are taken in other steps than the recorded ones. In a
recorded step, the thread runs Python wherever it is in no op or call. So the habit's time, stretched like the step by
the profiler, is laid into the gaps of its phases, longest first, until it is used up. Within a gap the place is
unknown: a gap that is longer than the remaining time is filled from its begin.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from syncscan.facts.backward import nodes
from syncscan.facts.profiler_work import profilers_own
from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import Phase
from syncscan.model.habit import Basis, Habit
from syncscan.model.interval import Cover, Interval, ThreadInterval, cover_of, union, union_of
from syncscan.model.slice_names import is_loader, is_optimizer
from syncscan.model.trace import CALLS, HOST, Category, Step, Trace
from syncscan.report.phrases import replayed
from syncscan.report.shown_names import shown
from syncscan.report.timeline_lanes import DrawnNames, pack, stacked

PAUSE, SAMPLED = 12, 13
"""Kinds of slices besides a `Category`: a pause that a fix takes out, a likely place of a sampled habit."""
NOTABLE = 0.001
"""Least part of the step that an interval takes to be drawn."""
LEAST_GAP = 0.005
"""Least part of the step that a gap takes: shorter ones are Python's usual way from op to op."""
LEAST_PLACED = 0.5
"""Least part of a habit's time that must fit into gaps; with less, most of it is elsewhere, and nothing is drawn."""
_BEFORE = frozenset({Phase.DATA, Phase.FORWARD, Phase.OTHER})
_AFTER = frozenset({Phase.OTHER})


class ThreadGap(msgspec.Struct, frozen=True):
    """A time in which a step's thread is in no op, call or known pause; ns, with the phases that it may be in."""

    begin: int
    end: int
    phases: frozenset[Phase]


class Placed(msgspec.Struct, frozen=True):
    """Where a habit most likely is in the recorded steps; `unplaced` says why it isn't drawn, empty where it is."""

    habit: Habit
    intervals: tuple[ThreadInterval, ...]
    unplaced: str = ""


def pauses(analysis: Analysis) -> Iterator[tuple[Habit, tuple[ThreadInterval, ...]]]:
    """Yield each replayed habit whose likely change takes notable intervals out of host threads, with these."""
    least = NOTABLE * replayed(analysis.step) * 1e3
    for habit in analysis.habits:
        if habit.gain is None or habit.gain.basis is not Basis.REPLAY or not habit.changes:
            continue
        long = tuple(i for i in habit.changes[0].host if i.end - i.begin >= least)
        if long:
            yield habit, long


def sampled_places(analysis: Analysis) -> tuple[Placed, ...]:
    """Return each habit that only samples show with its likely intervals, longest habit first."""
    habits = [habit for habit in analysis.habits if habit.sampled]
    steps = analysis.trace.main_steps
    if not habits or not steps:
        return ()
    gaps = gaps_of(analysis)
    places = []
    for habit in sorted(habits, key=lambda habit: -_likely_us(habit)):
        placed = _placed(habit, analysis, gaps)
        gaps = {step: without(gaps[step], placed.intervals) for step in steps}
        places.append(placed)
    return tuple(places)


def habit_lanes(
    analysis: Analysis, places: Sequence[Placed], tracks: Sequence[int], book: DrawnNames, origin: int
) -> tuple[dict[int, list[dict[str, Any]]], dict[int, str]]:
    """Return the lanes of pauses and of likely places, by thread, as the page's script reads them.

    Each habit adds a name to `book`; the second value maps the number of that name to the habit's id.
    """
    lanes: dict[int, list[dict[str, Any]]] = {track: [] for track in tracks}
    habits: dict[int, str] = {}
    stops = [(habit.advice.title, habit, intervals) for habit, intervals in pauses(analysis)]
    likely = [(slice_name(place.habit), place.habit, place.intervals) for place in places]
    for kind, label, look, drawn in (("pauses", "pauses", PAUSE, stops), ("sampled", "from samples", SAMPLED, likely)):
        slices: dict[int, list[tuple[int, int, int]]] = {}
        for name, habit, intervals in drawn:
            in_view = [i for i in intervals if i.track in lanes and i.begin >= origin]
            if in_view:
                number = book.add(name, len(in_view))
                habits[number] = habit.id
            for track, begin, end in in_view:
                slices.setdefault(track, []).append((begin - origin, end - origin, number))
        for track, own in slices.items():
            lanes[track].append({"kind": kind, "label": label, **_columns(own, look)})
    return lanes, habits


def _columns(slices: Iterable[tuple[int, int, int]], look: int) -> dict[str, Any]:
    begin, end, name = (np.array(column, np.int64) for column in zip(*sorted(slices), strict=True))
    row = stacked(begin, end)
    return {
        "rows": int(row.max()) + 1,
        "start": pack(begin, delta=True),
        "dur": pack(end - begin),
        "name": pack(name),
        "row": pack(row),
        "what": pack(np.full(len(begin), look, np.int64)),
    }


def slice_name(habit: Habit) -> str:
    """Return what the slices of a habit say: `tokenizes texts (from samples: likely here)`."""
    activity = habit.sampled.activity if habit.sampled else habit.advice.title
    return f"{shown(activity, 120)} (from samples: likely here)"


# gaps


def gaps_of(analysis: Analysis) -> dict[Step, list[ThreadGap]]:
    trace = analysis.trace
    steps = trace.main_steps
    if not steps:
        return {}
    track = steps[0].track
    free = cover_of([(s.ts, s.end) for s in steps]).without(_busy(analysis, track))
    backward, begins = _backward(trace, track, free)
    optimizer = _slices(trace, trace.where(is_optimizer, Category.ANNOTATION), track)
    outside = free.without(backward)
    between = outside.without(optimizer)
    return {
        step: sorted(
            [
                *(ThreadGap(*i, frozenset({Phase.BACKWARD})) for i in _within(step, free.without(outside))),
                *(ThreadGap(*i, frozenset({Phase.OPTIMIZER})) for i in _within(step, outside.without(between))),
                *(ThreadGap(*i, _phases_between(i, step, begins)) for i in _within(step, between)),
            ],
            key=lambda gap: gap.begin,
        )
        for step in steps
    }


def _busy(analysis: Analysis, track: int) -> Cover:
    """Return when a thread is in an op, a call, a loader, the profiler's own work or a pause that is drawn."""
    trace = analysis.trace
    rows = np.flatnonzero(trace.is_category(Category.CPU_OP, *CALLS))
    slices = _slices(trace, np.concatenate([rows, trace.where(is_loader, *HOST)]), track)
    paused = [*profilers_own(trace), *(i for _, intervals in pauses(analysis) for i in intervals)]
    known = cover_of([(i.begin, i.end) for i in paused if i.track == track])
    starts, ends = np.append(slices.starts, known.starts), np.append(slices.ends, known.ends)
    order = np.argsort(starts, kind="stable")
    return Cover(*union(starts[order], ends[order]))


def _backward(trace: Trace, track: int, free: Cover) -> tuple[Cover, Int64]:
    """Return when the thread waits for autograd's threads, and when these begin a graph node, ascending.

    That is from the begin of the gap in which they begin. The thread makes its first gradient before and then waits;
    after their last node, it runs again.
    """
    s, rows = trace.slices, nodes(trace)
    rows = rows[s.track[rows] != track]
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    begins, ends = s.ts[rows], s.end[rows]
    starts = np.append(free.starts, np.iinfo(np.int64).max)
    at = np.maximum(np.searchsorted(starts, begins, side="right") - 1, 0)
    inside = free.holds(begins)
    since = np.where(inside, starts[at], begins)
    order = np.argsort(since, kind="stable")
    return Cover(*union(since[order], ends[order])), begins


def _phases_between(gap: Interval, step: Step, begins: Int64) -> frozenset[Phase]:
    """Return the phases of a gap in no optimizer and no backward pass: only what is in none follows the last one."""
    own = begins[slice(*np.searchsorted(begins, [step.ts, step.end]).tolist())]
    return _AFTER if len(own) and gap.begin >= own[-1] else _BEFORE


def _slices(trace: Trace, rows: Int64, track: int) -> Cover:
    s = trace.slices
    rows = rows[s.track[rows] == track]
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    return Cover(*union(s.ts[rows], s.end[rows]))


def _within(step: Step, cover: Cover) -> list[Interval]:
    """Return the notable intervals of a cover within a step, cut at its edges."""
    first, last = np.searchsorted(cover.ends, step.ts, side="right"), np.searchsorted(cover.starts, step.end)
    begins, ends = np.maximum(cover.starts[first:last], step.ts), np.minimum(cover.ends[first:last], step.end)
    long = ends - begins >= LEAST_GAP * (step.end - step.ts)
    return [Interval(a, b) for a, b in zip(begins[long].tolist(), ends[long].tolist(), strict=True)]


def without(gaps: Sequence[ThreadGap], taken: Sequence[ThreadInterval]) -> list[ThreadGap]:
    """Return what is left of disjoint gaps behind the ordered, disjoint intervals that fill them from their begins."""
    begins = [i.begin for i in taken]
    left = []
    for gap in gaps:
        last = bisect.bisect_right(begins, gap.begin) - 1
        begin = max(gap.begin, taken[last].end) if last >= 0 else gap.begin
        if begin < gap.end:
            left.append(ThreadGap(begin, gap.end, gap.phases))
    return left


# the rule


def _placed(habit: Habit, analysis: Analysis, gaps: dict[Step, list[ThreadGap]]) -> Placed:
    step_ns, by_phase = replayed(analysis.step) * 1e3, habit.sampled.by_phase if habit.sampled else ()
    intervals, wanted = [], 0.0
    for step, own_gaps in gaps.items():
        scale = (step.end - step.ts) / step_ns if step_ns else 0.0
        times = [(phase, us * 1e3 * scale) for phase, us in by_phase]
        wanted += sum(ns for _, ns in times)
        filled = fill(times, own_gaps, NOTABLE * (step.end - step.ts))
        intervals += [ThreadInterval(step.track, *i) for i in filled]
    reason = _why_not(habit, analysis.trace, gaps, intervals, wanted)
    return Placed(habit, () if reason else tuple(intervals), reason)


def fill(times: Sequence[tuple[Phase, float]], gaps: Sequence[ThreadGap], least: float) -> list[Interval]:
    """Return the parts of disjoint gaps that hold these times, ns: of each phase the longest gaps first.

    The parts are disjoint and in time order; those that touch are one, and none is shorter than `least` ns.
    """
    taken: dict[int, Interval] = {}
    for phase, ns in times:
        fitting = [gap for gap in gaps if phase in gap.phases]
        for gap in sorted(fitting, key=lambda gap: (gap.begin - gap.end, gap.begin)):
            begin = taken[gap.begin].end if gap.begin in taken else gap.begin
            part = Interval(begin, min(gap.end, begin + round(ns)))
            if part.length <= 0:
                continue
            taken[gap.begin] = Interval(gap.begin, part.end)
            ns -= part.length
    return [i for i in union_of(list(taken.values())) if i.length >= least]


def _why_not(
    habit: Habit, trace: Trace, gaps: dict[Step, list[ThreadGap]], intervals: Sequence[ThreadInterval], wanted: float
) -> str:
    """Return in a sentence why the timeline doesn't show the habit; empty where it does."""
    if sum(i.end - i.begin for i in intervals) < LEAST_PLACED * wanted:
        return (
            "The timeline doesn't show where: outside of ops and calls, the recorded steps have less than half of this "
            "time in the phases that it was sampled in."
        )
    if habit.sampled and habit.sampled.in_ops:
        longest, name = _longest_op(trace, gaps, {phase for phase, _ in habit.sampled.by_phase})
        if longest > max((i.end - i.begin for i in intervals), default=0):
            return f"The timeline doesn't show where: an op such as {shown(name, 60)} may hold it as well as a gap."
    return ""


def _longest_op(trace: Trace, gaps: dict[Step, list[ThreadGap]], phases: set[Phase]) -> tuple[int, str]:
    """Return the length, ns, and name of the longest op that begins or ends at a gap of these phases."""
    s, (rows, _) = trace.slices, trace.rows_of(Category.CPU_OP)
    near = [gap for own_gaps in gaps.values() for gap in own_gaps if gap.phases & phases]
    beside = np.isin(s.ts[rows], [gap.end for gap in near]) | np.isin(s.end[rows], [gap.begin for gap in near])
    candidates = rows[beside & np.isin(s.track[rows], [step.track for step in gaps])]
    if not len(candidates):
        return 0, ""
    longest = candidates[int(np.argmax(s.dur[candidates]))]
    return int(s.dur[longest]), trace.strings[int(s.name[longest])]


def unplaced(places: Iterable[Placed]) -> Iterator[tuple[str, str]]:
    """Yield the id of each habit that isn't drawn, with the reason in a sentence."""
    for place in places:
        if place.unplaced:
            yield place.habit.id, place.unplaced


def _likely_us(habit: Habit) -> float:
    return sum(us for _, us in habit.sampled.by_phase) if habit.sampled else 0.0
