"""From bytes to a linked Trace: any shape a torch trace comes in, whole or broken."""

from __future__ import annotations

import os
from collections.abc import Callable

from syncscan.load import reader
from syncscan.load.folder import find
from syncscan.load.source import Source, open_bytes
from syncscan.model.trace import Trace


def load(
    path: str | os.PathLike[str], progress: Callable[[int, int], None] | None = None, *, piece: int = reader.PIECE
) -> Trace:
    """Read one trace.

    Args:
        path: a file, plain or packed with gzip or zstd; `-` for standard input; or a URL that fsspec opens.
        progress: called while reading with the bytes done and the bytes in all (0 if that isn't known).
        piece: bytes of text in memory at once.

    Raises:
        TraceNotFound, TraceEmpty, TraceUnreadable: nothing can be read there.
        MissingExtra: a package for this kind of place or compression isn't installed.
    """
    with open_bytes(path) as source:
        report = None if progress is None else lambda _: progress(source.done, source.size)
        return reader.read(source, os.fspath(path), piece, report, lambda: source.lost)


__all__ = ["Source", "find", "load", "open_bytes"]
