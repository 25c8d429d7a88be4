"""Choose what a viewer of the annotated copy shows first: the costliest sync and the step around it."""

from __future__ import annotations

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Occurrence
from syncscan.model.interval import Interval
from syncscan.report.annotate.around import costliest, interval_around


class Opening(msgspec.Struct, frozen=True):
    """The sync point to select and the interval to show; ns on the trace's clock."""

    id: str
    """Id of the sync's finding."""
    number: int
    """Index of the sync point among those of its finding, by time."""
    sync: Interval
    view: Interval
    """Interval to show, within the recorded times: Perfetto zooms out fully where asked for more."""
    pids: tuple[str, ...]
    """Processes to expand: the sync's host thread and its device's streams."""


def opening_of(analysis: Analysis) -> Opening | None:
    """Return the costliest sync point of the report's first finding; None without findings."""
    if not analysis.findings:
        return None
    first = analysis.findings[0]
    worst = costliest(first)
    return Opening(
        id=first.id,
        number=sum(o.sync.ts < worst.sync.ts for o in first.occurrences),
        sync=Interval(worst.sync.ts, worst.sync.end),
        view=_within_trace(analysis, _step_around(analysis, worst) or interval_around(first)),
        pids=_pids(analysis, worst),
    )


def _step_around(analysis: Analysis, o: Occurrence) -> Interval | None:
    """Return the step in which a sync begins, extended to the end of the sync and the idle time after it."""
    step = next((s for s in analysis.trace.steps if s.ts <= o.sync.ts < s.end), None)
    return Interval(step.ts, max(step.end, o.sync.end + o.cost.bubble_ns)) if step else None


def _within_trace(analysis: Analysis, view: Interval) -> Interval:
    s = analysis.trace.slices
    return Interval(max(view.begin, int(s.ts.min())), min(view.end, int(s.end.max())))


def _pids(analysis: Analysis, o: Occurrence) -> tuple[str, ...]:
    t = analysis.trace
    of_device = t.slices.track[t.device_rows[t.slices.device[t.device_rows] == o.sync.device]]
    return tuple(dict.fromkeys(t.tracks[track].pid for track in (o.sync.track, *of_device[:1].tolist())))
