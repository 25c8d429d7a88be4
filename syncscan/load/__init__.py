"""From bytes to a linked Trace: any shape a torch trace comes in, whole or broken."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from syncscan.load import half, reader
from syncscan.load.folder import find
from syncscan.load.source import Source, open_bytes
from syncscan.model.trace import Trace


def load(
    path: str | os.PathLike[str], progress: Callable[[int, int], None] | None = None, *, piece: int = reader.PIECE
) -> Trace:
    """Read one trace; a big file with two processes where that is possible and pays.

    Args:
        path: a file, plain or packed with gzip or zstd; `-` for standard input; or a URL that fsspec opens.
        progress: called while reading with the bytes done and the bytes in all (0 if that isn't known).
        piece: bytes of text in memory at once.

    Raises:
        TraceNotFound, TraceEmpty, TraceUnreadable: nothing can be read there.
        MissingExtra: a package for this kind of place or compression isn't installed.
    """
    with _uncollected():
        return _load(os.fspath(path), progress, piece)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: nothing read makes cycles, and at 2 GB looking for them doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _load(name: str, progress: Callable[[int, int], None] | None, piece: int) -> Trace:
    with open_bytes(name) as source:
        if source.text_size < half.WORTHWHILE or not source.reopens or not half.possible():
            return _read(source, name, piece, progress)
        try:
            with half.Half(lambda: _half(name, piece)) as other:
                return _read(source, name, piece, progress, other)
        except reader.Entangled:
            pass
    with open_bytes(name) as source:
        return _read(source, name, piece, progress)


def _read(
    source: Source,
    name: str,
    piece: int,
    progress: Callable[[int, int], None] | None,
    other: half.Half | None = None,
) -> Trace:
    report = None if progress is None else lambda _: progress(source.done, source.size)
    return reader.read(source, name, piece, report, lambda: source.lost, other)


def _half(name: str, piece: int) -> object:
    with open_bytes(name) as source:
        return reader.read_half(source, name, piece)


__all__ = ["Source", "find", "load", "open_bytes"]
