"""Annotate a trace: its recorded events as they are, and tracks that syncscan adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syncscan.model.analysis import Analysis
from syncscan.report.annotate.around import chosen, interval_around, touching
from syncscan.report.annotate.copy_text import document
from syncscan.report.annotate.lanes import SHORTER
from syncscan.report.annotate.opening import Opening, opening_of
from syncscan.report.annotate.tracks import added_events


def annotate(analysis: Analysis, head: bytes, recorded: Iterable[bytes], added: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the text of the whole trace: its own events, unchanged and in order, then syncscan's tracks.

    Args:
        head: its text up to the list of events; empty for a bare list.
        recorded: the text of its events, separated by commas in a piece.
        added: the text of the events of `added_events`, separated in the same way.
    """
    return document(head, analysis.trace.info.metadata, recorded, added)


def annotate_around(analysis: Analysis, head: bytes, recorded: Iterable[bytes], finding: str) -> Iterator[bytes]:
    """Yield the part of the trace around a finding's most expensive sync point, small enough for any viewer.

    Args:
        head: its text up to the list of events; empty for a bare list.
        finding: an id, its beginning, or a number of the report, from 1.

    Raises:
        UsageError: no such finding.
    """
    around = interval_around(chosen(analysis, finding))
    return annotate(analysis, head, touching(recorded, around), added_events(analysis, around))


__all__ = ["SHORTER", "Opening", "added_events", "annotate", "annotate_around", "document", "opening_of"]
