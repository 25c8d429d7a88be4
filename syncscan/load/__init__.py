"""Read a torch trace of any format, whole or damaged, into a linked Trace."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from syncscan.errors import TraceUnreadable
from syncscan.load import databases, memory_check, reader, second_process
from syncscan.load.byte_stream import ByteStream, in_memory, open_bytes
from syncscan.load.databases import ranks_in
from syncscan.load.folder import find, named_as_trace, natural, traces_among
from syncscan.load.foreign import refused, written_by_another
from syncscan.load.saved import PEEK, has_events, is_saved, named_as_saved, open_events, read_saved
from syncscan.load.split import PIECE
from syncscan.load.steps import with_chosen_steps, with_steps
from syncscan.load.unpack import redacted
from syncscan.model.trace import Trace


def load(
    path: str | os.PathLike[str],
    progress: Callable[[int, int], None] | None = None,
    *,
    piece: int = PIECE,
    max_memory: int | None = None,
    process: str | None = None,
) -> Trace:
    """Read one trace; a big file with a second process, if that is possible and worthwhile.

    A path is a file, plain or compressed with gzip, bzip2, xz or zstd; `ARCHIVE/NAME` for one in a tar or zip, or the
    archive if it holds one trace; `-` for standard input; or a URL that fsspec opens. A saved analysis gives the trace
    that it was made from. Exports of Nsight Systems and its reports are traces too, and `EXPORT/PID` one process of
    one. `progress` is called with the bytes done and the total (0 if unknown). By default most of the free memory may
    be taken (`max_memory`, bytes). Of an export only the `process` with this pid is read, with an empty text the one
    that launched most.
    """
    most = memory_check.available() if max_memory is None else max_memory
    with uncollected():
        return _load(os.fspath(path), progress, piece, most, process)


def parse(text: bytes, name: str) -> Trace:
    with uncollected():
        return _read(in_memory(text, name), name, PIECE, None, None)


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspend garbage collection meanwhile; usable as a decorator too.

    Reading and analyzing create hardly any cycles. Searching for them doubles the time to read 2 GB, and
    took 3 % of an analysis of 2,600 waits, a fifth of one of 6,000 that each are at a place of their own.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _load(
    path: str, progress: Callable[[int, int], None] | None, piece: int, most: int | None, process: str | None
) -> Trace:
    if databases.named_as_report(path):
        return databases.read_report(path, process, progress, most)
    path, named = databases.process_in(_only_one(path))
    name = redacted(path)
    with open_bytes(path) as stream:
        begin = stream.peek(PEEK)
        if is_saved(begin):
            return read_saved(stream, name, most)
        if databases.is_database(begin):
            return databases.read(stream, path, named, process, progress, most)
        large = stream.text_size >= second_process.WORTHWHILE_BYTES and Path(path).is_file()
        if not large or not second_process.possible():
            return _read(stream, name, piece, progress, most)
        try:
            with second_process.second_process(lambda: _share(path, piece, most)) as share:
                return _read(stream, name, piece, progress, most, share)
        except (reader.NeedsOneProcess, OSError):
            pass
    with open_bytes(path) as stream:
        return _read(stream, name, piece, progress, most)


def _only_one(path: str) -> str:
    """Return the trace in a tar or zip that holds one, and any other path as it is."""
    if not os.path.isfile(path):  # noqa: PTH113  Path.is_file raises for long names
        return path
    traces = find(path)
    if len(traces) > 1:
        raise TraceUnreadable(
            f"{redacted(path)} contains {len(traces)} traces.", f"Give one, such as {redacted(traces[0])}."
        )
    return traces[0]


def _read(
    stream: ByteStream,
    name: str,
    piece: int,
    progress: Callable[[int, int], None] | None,
    most: int | None,
    share: Callable[[], reader.Share | None] | None = None,
) -> Trace:
    report = None if progress is None else lambda _: progress(stream.done, stream.size)
    return reader.read(stream, name, piece, report, lambda: stream.lost, share, most)


def _share(path: str, piece: int, most: int | None) -> reader.Share | None:
    with open_bytes(path) as stream:
        return reader.read_share(stream, path, piece, None if most is None else most // 2)


__all__ = [
    "ByteStream",
    "find",
    "has_events",
    "in_memory",
    "load",
    "named_as_saved",
    "named_as_trace",
    "natural",
    "open_bytes",
    "open_events",
    "parse",
    "ranks_in",
    "refused",
    "traces_among",
    "uncollected",
    "with_chosen_steps",
    "with_steps",
    "written_by_another",
]
