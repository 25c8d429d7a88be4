"""From a trace file and its Analysis to an annotated trace file, written whole or not at all."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from syncscan.errors import TraceNotFound, TraceUnreadable, UsageError

CHUNK = 1 << 20
"""Bytes of text that are in memory at a time, while a trace is copied."""

_TENSORBOARD_READS = re.compile(r".+\.pt\.trace\.json(\.gz)?")


def read_by_tensorboard(name: str) -> bool:
    """Whether TensorBoard's plugin takes a file of this name for a trace.

    Source: torch_tb_profiler 0.4.3, `consts.WORKER_PATTERN`.
    """
    return _TENSORBOARD_READS.fullmatch(name) is not None


def text_of(path: str | os.PathLike[str]) -> Callable[[], Iterator[bytes]]:
    """Something that gives the uncompressed, valid text of a trace from its beginning, each time it is called."""
    from syncscan.report.annotate.splice import valid_text

    return lambda: valid_text(_chunks(path))


def _chunks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    try:
        with open(path, "rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            source = gzip.GzipFile(fileobj=raw) if packed else raw
            yield from iter(lambda: source.read(CHUNK), b"")
    except FileNotFoundError:
        raise TraceNotFound(f"{path}: no such file.", "Check the path.") from None
    except (OSError, EOFError) as e:
        raise TraceUnreadable(f"{path} can't be read: {e}.", "Record it again.") from None


def write(chunks: Iterable[bytes], path: Path, force: bool = False) -> None:
    """Write text to a file, gzipped if its name ends in `.gz`; beside its place first, so that no half is ever seen.

    Raises:
        UsageError: the file exists and `force` isn't set, or its folder can't be written to.
    """
    if path.exists() and not force:
        raise UsageError(f"{path} exists.", "Give another name, or --force to replace it.")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as e:
        raise UsageError(f"{path} can't be written: {e.strerror}.", "Choose a folder that exists.") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as raw:
            _fill(raw, chunks, packed=path.suffix == ".gz")
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _fill(raw: IO[bytes], chunks: Iterable[bytes], packed: bool) -> None:
    if not packed:
        raw.writelines(chunks)
        return
    from isal import igzip

    with igzip.GzipFile(fileobj=raw, mode="wb", compresslevel=2, mtime=0) as f:
        for chunk in chunks:
            f.write(chunk)
