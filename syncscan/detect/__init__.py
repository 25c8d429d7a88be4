"""Find the calls that wait for the device, and name each sync point by the first rule that matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.detect.call import Call
from syncscan.detect.calls import blocking_calls
from syncscan.detect.code_place import places_of
from syncscan.detect.neighbours import Neighbours
from syncscan.detect.rule_set import RuleSet, diagnosed
from syncscan.detect.rules import PREAMBLE, RULES
from syncscan.facts.device_work import DeviceWork
from syncscan.facts.paths import Paths
from syncscan.facts.period import window
from syncscan.model.arrays import Bool, distinct
from syncscan.model.finding import SyncPoint
from syncscan.model.interval import cover_of
from syncscan.model.slice_names import is_service_thread
from syncscan.model.trace import CALLS, NONE, Category, Trace
from syncscan.rules.pages import RuleDoc, sync_page


def detect(trace: Trace) -> tuple[tuple[SyncPoint, ...], tuple[str, ...]]:
    """Find and name the sync points of a trace, in order of thread and time.

    Each warning names a rule that raised and was skipped.
    """
    rules = RuleSet()
    points = diagnosed(calls_of(trace), rules)
    return _with_intent(trace, points), tuple(rules.warnings)


def calls_of(trace: Trace) -> Iterator[Call]:
    """Yield the blocking calls as rules see them, ordered by thread and time."""
    neighbours, slices = Neighbours(trace), trace.slices
    points = blocking_calls(trace, trace.cached(DeviceWork))
    paths = [trace.cached(Paths).to(point.around) for point in points]
    for point, path, place in zip(points, paths, places_of(trace, points, paths), strict=True):
        op = path.worker  # what the program called
        begin, end = (point.ts, point.end) if op == NONE else (slices.ts.item(op), slices.end.item(op))
        before, after = neighbours.before(point.track, begin, path), neighbours.after(point.track, end)
        yield Call(point, trace, neighbours, path, place, before, after)


def catalogue() -> tuple[RuleDoc, ...]:
    """Return the documentation of every rule, in the order in which rules run."""
    return tuple(sync_page(rule.id) for rule in RULES)


def _with_intent(trace: Trace, points: Sequence[SyncPoint]) -> tuple[SyncPoint, ...]:
    """Mark waits outside of the program's threads or of its steps as intended.

    Before, between and after the steps, the profiler does its own work, and so in warm-up.
    """
    threads, marked = _program_threads(trace), list(points)
    own = np.array([track in threads for track in range(len(trace.tracks))], np.bool_)
    meant = ~own[np.array([point.track for point in points], np.int64)]
    begun = np.array([point.ts for point in points], np.int64)
    if trace.steps:
        meant |= ~trace.in_steps(begun)
    elif not trace.info.capture.pretended and (trace.device_calls != NONE).any():
        meant |= ~cover_of([window(trace)]).holds(begun)
    for place in np.flatnonzero(meant).tolist():
        marked[place] = _intended(marked[place])
    return tuple(marked)


def _intended(point: SyncPoint) -> SyncPoint:
    return replace(point, diagnosis=replace(point.diagnosis, intended=True))


def _program_threads(trace: Trace) -> set[int]:
    """Return the tracks with ops or steps of the program; waits elsewhere (pinning, NCCL's watchdog) delay no step.

    Without ops, these are the threads that launch device work, since a thread that only waits can't be late.
    """
    threads = _tracks(trace, trace.is_category(Category.CPU_OP, Category.ANNOTATION))
    calling = _tracks(trace, trace.is_category(*CALLS))
    if not threads & calling:
        calls = trace.device_calls
        threads |= set(distinct(trace.slices.track[calls[calls != NONE]]).tolist()) or calling
    return {t for t in threads if not is_service_thread(trace.tracks[t].thread)}


def _tracks(trace: Trace, rows: Bool) -> set[int]:
    return {track for track in range(len(trace.tracks)) if rows[trace.track_rows(track)].any()}


__all__ = ["PREAMBLE", "Call", "RuleDoc", "calls_of", "catalogue", "detect"]
