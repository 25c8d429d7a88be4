"""Select the part of a trace around one finding: its interval, the events that touch it, what a viewer shows first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, SyncPoint
from syncscan.model.interval import Interval
from syncscan.report.named import named

LEAST_MARGIN = 1_000_000
"""Least margin shown on both sides of a sync point, ns."""


class RecordedEvent(msgspec.Struct):
    """Fields that decide where an event is drawn; a file may hold anything there."""

    ph: Any = ""
    pid: Any = None
    tid: Any = None
    ts: Any = 0
    dur: Any = 0
    id: Any = None
    cat: Any = ""


decode = msgspec.json.Decoder(RecordedEvent).decode


def chosen(analysis: Analysis, which: str) -> Finding:
    """Return the finding that `which` names, as `named` resolves it; of several to remove together, the costliest."""
    findings = [part for part in named(analysis, which) if isinstance(part, Finding)]
    if not findings:
        raise UsageError(
            f"{which} is a habit, which has no single place in the trace.", "Give the number or id of a finding."
        )
    return findings[0]


def interval_around(finding: Finding) -> Interval:
    worst = finding.costliest
    start, end = worst.ts, worst.end + worst.bubble_ns
    margin = max(end - start, LEAST_MARGIN)
    return Interval(start - margin, end + margin)


def touching(events: Iterable[bytes], interval: Interval) -> Iterator[bytes]:
    """Yield the recorded events that touch an interval: all row names, and arrows with both ends in it."""
    arrows: dict[tuple[str, str], list[bytes]] = {}
    for text in events:
        try:
            event = decode(text)
        except msgspec.MsgspecError:
            continue
        if event.ph == "M":
            yield b"\n" + text
        elif _touches(event, interval):
            if event.ph in ("s", "t", "f"):
                arrows.setdefault((str(event.cat), str(event.id)), []).append(b"\n" + text)
            else:
                yield b"\n" + text
    for ends in arrows.values():
        if len(ends) > 1:
            yield from ends


def _touches(event: RecordedEvent, interval: Interval) -> bool:
    try:
        start, length = float(event.ts) * 1000, float(event.dur) * 1000
        return interval.touches(int(start), int(start + length))
    except (TypeError, ValueError, OverflowError):  # what is no number; numbers beyond all times
        return False


# what a viewer shows first


class Opening(msgspec.Struct, frozen=True):
    """The sync point to select and the interval to show; ns on the trace's clock."""

    id: str
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
    worst = first.costliest
    return Opening(
        id=first.id,
        number=sum(o.ts < worst.ts for o in first.occurrences),
        sync=Interval(worst.ts, worst.end),
        view=_within_trace(analysis, _step_around(analysis, worst) or interval_around(first)),
        pids=_pids(analysis, worst),
    )


def _step_around(analysis: Analysis, o: SyncPoint) -> Interval | None:
    """Return the step in which a sync begins, extended to the end of the sync and the idle time after it."""
    step = next((s for s in analysis.trace.steps if s.ts <= o.ts < s.end), None)
    return Interval(step.ts, max(step.end, o.end + o.bubble_ns)) if step else None


def _within_trace(analysis: Analysis, view: Interval) -> Interval:
    s = analysis.trace.slices
    return Interval(max(view.begin, int(s.ts.min())), min(view.end, int(s.end.max())))


def _pids(analysis: Analysis, o: SyncPoint) -> tuple[str, ...]:
    t = analysis.trace
    of_device = t.slices.track[t.device_rows[t.slices.device[t.device_rows] == o.device]]
    return tuple(dict.fromkeys(t.tracks[track].pid for track in (o.track, *of_device[:1].tolist())))
