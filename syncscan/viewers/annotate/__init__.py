"""Annotate a trace: its recorded events as they are, and tracks that syncscan adds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from syncscan.model.analysis import Analysis
from syncscan.model.json_text import strict_text
from syncscan.viewers.annotate.around import Opening, chosen, interval_around, opening_of, touching
from syncscan.viewers.annotate.lanes import SHORTER
from syncscan.viewers.annotate.tracks import added_events


def annotate(analysis: Analysis, head: bytes, recorded: Iterable[bytes], added: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the whole trace, as `document` does: its own events, unchanged and in order, then syncscan's tracks."""
    return document(head, analysis.trace.info.metadata, recorded, added)


def annotate_around(analysis: Analysis, head: bytes, recorded: Iterable[bytes], finding: str) -> Iterator[bytes]:
    """Yield the part of the trace around a finding's most expensive sync point, small enough for any viewer."""
    around = interval_around(chosen(analysis, finding))
    return annotate(analysis, head, touching(recorded, around), added_events(analysis, around))


def document(
    head: bytes, metadata: Mapping[str, Any], recorded: Iterable[bytes], added: Iterable[bytes]
) -> Iterator[bytes]:
    """Yield a trace in pieces: the recorded events, unchanged and in order, then the added ones.

    The layout suits TensorBoard's plugin. It rejects a bare list, so that gets an object around it; and it cuts a trace
    after its last `]`, so members after the events move before them if they hold one.

    `head` is the text up to the list of events: empty for a bare list, or where it is broken. `metadata` is all members
    but the events, which are separated by commas in a piece.

    Source: torch_tb_profiler 0.4.3: `append_gpu_metrics` in `run.py`, `_preprocess_file` in `profiler/data.py`.
    """
    late = _members({k: v for k, v in metadata.items() if k not in _keys(head)})
    in_front = late if b"]" in late else b""
    yield _front(head, in_front) + b"["
    behind_others = False
    for piece in recorded:
        yield (b"," if behind_others else b"") + piece
        behind_others = True
    for event in added:
        yield (b",\n" if behind_others else b"\n") + event
        behind_others = True
    yield b"\n]" + (b",\n" + late if late and not in_front else b"") + b"\n}\n"


def _keys(head: bytes) -> set[str]:
    return set(json.loads(head + b"[]}")) if head.strip() else set()


def _members(members: Mapping[str, Any]) -> bytes:
    return strict_text(members)[1:-1].encode()


def _front(head: bytes, members: bytes) -> bytes:
    if not head.strip():
        return b"{" + members + (b",\n" if members else b"") + b'"traceEvents": '
    if not members:
        return head
    before, brace, behind = head.partition(b"{")
    return before + brace + b"\n" + members + b"," + behind


__all__ = ["SHORTER", "Opening", "added_events", "annotate", "annotate_around", "document", "opening_of"]
