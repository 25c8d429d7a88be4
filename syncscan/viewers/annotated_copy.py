"""Write an annotated copy of a trace file, completely or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from syncscan import load
from syncscan.load.byte_stream import ByteStream
from syncscan.load.valid_json import ValidText
from syncscan.model.analysis import Analysis
from syncscan.viewers.annotate import added_events, annotate, annotate_around, document
from syncscan.viewers.annotate.recorded import ColumnsText
from syncscan.viewers.annotate.untangle import untangled

Progress = Callable[[int, int], None]
"""Told how many bytes of the trace's file are read, and how many there are."""

_TENSORBOARD_READS = re.compile(r".+\.pt\.trace\.json(\.gz)?")


def read_by_tensorboard(name: str) -> bool:
    """Return whether TensorBoard's plugin takes a file of this name for a trace.

    Source: torch_tb_profiler 0.4.3, `consts.WORKER_PATTERN`.
    """
    return _TENSORBOARD_READS.fullmatch(name) is not None


def run_name(path: str) -> str:
    """Return a name for a trace's run: its file's, without what TensorBoard or a browser can't take."""
    name = re.sub(r"(\.pt)?(\.trace)?(\.json)?(\.(gz|zst|xz|bz2))?$", "", Path(path).name)
    # A last part of digits would be taken for the number of a span.
    return re.sub(r"[^\w-]+", "_", name)[:100] or "trace"


def annotated(
    analysis: Analysis,
    path: str,
    finding: str | None = None,
    progress: Progress | None = None,
) -> Iterator[bytes]:
    """Yield the text of a trace's annotated copy, in pieces.

    With `finding` only the part around this one: an id, its beginning, or a number of the report, from 1.
    """
    with _open_again(analysis, path) as (source, text):
        if finding is None:
            events = _reporting(text.pieces(), source, progress)
            yield from annotate(analysis, text.head, events, added_events(analysis))
        else:
            events = _reporting(text.events(), source, progress)
            yield from annotate_around(analysis, text.head, events, finding)


def untangled_copy(analysis: Analysis, path: str, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield the text of the annotated copy for Perfetto, with slices that it would drop on rows of their own.

    It reads the trace twice; `progress` is called in both passes.
    """
    with _open_again(analysis, path) as (_, text):
        head = text.head

    def pieces() -> Iterator[bytes]:
        with _open_again(analysis, path) as (source, text):
            yield from _reporting(text.pieces(), source, progress)

    yield from annotate(analysis, head, untangled(pieces), added_events(analysis, perfetto=True))


def copied(analysis: Analysis, path: str, progress: Progress | None = None) -> Iterator[bytes]:
    """Yield the text of the trace itself, in pieces and in a shape that every viewer reads; nothing is added."""
    with _open_again(analysis, path) as (source, text):
        yield from document(text.head, analysis.trace.info.metadata, _reporting(text.pieces(), source, progress), ())


@contextmanager
def _open_again(analysis: Analysis, path: str) -> Iterator[tuple[ByteStream | None, ValidText | ColumnsText]]:
    """Open the recorded events: those of the file, or the trace's slices where the file is a database."""
    if not load.has_events(path):
        yield None, ColumnsText(analysis.trace)
        return
    with load.open_events(path) as source:
        yield source, ValidText(source, path)


def _reporting(pieces: Iterable[bytes], source: ByteStream | None, progress: Progress | None) -> Iterator[bytes]:
    reported = 0
    for piece in pieces:
        if progress and source and source.done != reported:
            reported = source.done
            progress(reported, source.size)
        yield piece
