"""From an Analysis and the bytes of its trace to the annotated twin: the recorded events, and tracks of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from syncscan.model.analysis import Analysis
from syncscan.report.annotate.around import chosen, kept_events, window
from syncscan.report.annotate.splice import rewrite, splice
from syncscan.report.annotate.structure import envelope
from syncscan.report.annotate.tracks import added_events

Chunks = Callable[[], Iterable[bytes]]
"""Gives the uncompressed text of a trace from its beginning; called once for each time it is read."""


def annotate(analysis: Analysis, text: Chunks) -> Iterator[bytes]:
    """The whole trace, its own events as they stand and in order, with syncscan's tracks behind them.

    Args:
        analysis: of the trace that `text` holds.
        text: read twice, chunk by chunk; nothing of it is kept.

    Raises:
        TraceUnreadable: the text holds no list of events.
    """
    found = envelope(text(), analysis.trace.info.path)
    return splice(text(), found, added_events(analysis))


def annotate_around(analysis: Analysis, text: Chunks, finding: str, margin_ns: int | None = None) -> Iterator[bytes]:
    """The part of the trace around a finding's most expensive sync point, small enough for any viewer.

    Args:
        analysis: of the trace that `text` holds.
        text: read twice, chunk by chunk; nothing of it is kept.
        finding: an id, its beginning, or a number of the report, from 1.
        margin_ns: shown on both sides of the sync; by default as long as what it cost, at least 1 ms.

    Raises:
        UsageError: no such finding.
        TraceUnreadable: the text holds no list of events.
    """
    times = window(chosen(analysis, finding), margin_ns)
    found = envelope(text(), analysis.trace.info.path)
    return rewrite(kept_events(text(), found, times), found, added_events(analysis, times))


def plain_copy(text: Chunks, path: str = "the trace") -> Iterator[bytes]:
    """The trace without anything added, in a shape that viewers read: an object, closed, with its members in front."""
    return splice(text(), envelope(text(), path), ())
