"""Select the part of a trace around one finding: its interval, and the recorded events that touch it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Occurrence
from syncscan.model.interval import Interval
from syncscan.report.named import named

LEAST_MARGIN = 1_000_000
"""Least margin shown on both sides of a sync point, ns."""


class _TraceEvent(msgspec.Struct):
    ph: str = ""
    ts: float | str = 0
    dur: float | str = 0
    id: Any = None
    cat: str = ""


_decode = msgspec.json.Decoder(_TraceEvent).decode


def chosen(analysis: Analysis, which: str) -> Finding:
    """Return the finding that `which` names, as `named` resolves it; of several to remove together, the costliest.

    Raises:
        UsageError: nothing, or more than one thing, is called that, or a habit is.
    """
    findings = [part for part in named(analysis, which) if isinstance(part, Finding)]
    if not findings:
        raise UsageError(
            f"{which} is a habit, which has no single place in the trace.", "Give the number or id of a finding."
        )
    return findings[0]


def interval_around(finding: Finding) -> Interval:
    """Return the interval around the sync point of a finding that cost the most.

    Args:
        finding: at least one occurrence.
    """
    worst = costliest(finding)
    start, end = worst.sync.ts, worst.sync.end + worst.cost.bubble_ns
    margin = max(end - start, LEAST_MARGIN)
    return Interval(start - margin, end + margin)


def costliest(finding: Finding) -> Occurrence:
    """Return the sync point of a finding with the largest sum of wait and idle time; the first of equals."""
    return max(finding.occurrences, key=_cost)


def _cost(o: Occurrence) -> tuple[int, int]:
    return o.cost.wait_ns + o.cost.bubble_ns, -o.sync.ts


def touching(events: Iterable[bytes], interval: Interval) -> Iterator[bytes]:
    """Yield the recorded events that touch an interval: all row names, and arrows with both ends in it.

    Args:
        interval: the times to keep.
    """
    arrows: dict[tuple[str, str], list[bytes]] = {}
    for text in events:
        try:
            event = _decode(text)
        except msgspec.MsgspecError:
            continue
        if event.ph == "M":
            yield b"\n" + text
        elif _touches(event, interval):
            if event.ph in ("s", "t", "f"):
                arrows.setdefault((event.cat, str(event.id)), []).append(b"\n" + text)
            else:
                yield b"\n" + text
    for ends in arrows.values():
        if len(ends) > 1:
            yield from ends


def _touches(event: _TraceEvent, interval: Interval) -> bool:
    try:
        start, length = float(event.ts) * 1000, float(event.dur) * 1000
        return interval.touches(int(start), int(start + length))
    except (ValueError, OverflowError):  # text that is no number; numbers beyond all times
        return False
