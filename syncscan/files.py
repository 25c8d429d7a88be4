"""Write a file for the user atomically, without replacing one unless asked."""

from __future__ import annotations

import itertools
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from syncscan.errors import UsageError

_BATCH = 1 << 18
"""Least bytes that are written or compressed at once: passing them on costs as much as compressing a few kilobytes."""
_FULL = "Is the disk full, or the name too long?"
_SHORTER = "Give another name."
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")
_FILE = re.compile(r"\A(file|local):(//)?")


def refuse(path: Path, force: bool = False, sources: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise before anything is read if a file can't be written.

    Args:
        path: where to.
        force: replace a file that is there.
        sources: the files that are read; none of them is ever replaced.

    Raises:
        UsageError: it is one of the sources, a folder, a file and `force` isn't set, or in no folder.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        if not Path(os.path.realpath(path)).parent.is_dir():
            why = f"{path} can't be written: the folder doesn't exist."
            raise UsageError(why, "Choose an existing folder that you can write to.") from None
        return
    except (OSError, ValueError) as e:
        raise UsageError(f"{path} can't be written: {getattr(e, 'strerror', None) or e}.", _SHORTER) from None
    if any(os.path.samestat(status, known) for source in sources if (known := _status(os.fspath(source)))):
        raise UsageError(f"{path} is the trace itself.", "Give another name.")
    if stat.S_ISDIR(status.st_mode):
        raise UsageError(f"{path} is a folder.", "Give a file in it.")
    if stat.S_ISREG(status.st_mode) and not force:
        raise UsageError(f"{path} exists.", "Give another name, or replace it with --force.")


def _status(source: str) -> os.stat_result | None:
    """Return the status of a source on this machine; None for others."""
    try:
        return os.fstat(0) if source == "-" else os.stat(_local(source))  # noqa: PTH116
    except (OSError, ValueError):
        return None


def _local(source: str) -> str:
    """Return the path in a URL of a local file, as fsspec accepts it; any other source unchanged."""
    if not _URL.match(source):
        return source
    innermost = source.rpartition("::")[2]
    return os.path.expanduser(_FILE.sub("", innermost).rstrip("/"))  # noqa: PTH111


def write(path: Path, chunks: Iterable[bytes], force: bool = False) -> None:
    """Write a file beside its place and move it there, so that no half of it is ever visible.

    A link is followed: what it points to is written, and the link stays. A device or a pipe is written into, as a shell
    would. A file that is replaced keeps its permissions; a new one gets what the user's umask leaves.

    Args:
        path: where to; gzipped if its name ends in `.gz`.
        chunks: its bytes, piece by piece.
        force: replace a file that is there.

    Raises:
        UsageError: the file exists and `force` isn't set, it is a folder, or it can't be written.
    """
    refuse(path, force)
    target, packed = Path(os.path.realpath(path)), path.suffix == ".gz"
    old_mode = target.stat().st_mode if target.exists() else None
    if old_mode is not None and not stat.S_ISREG(old_mode):
        _write_into(target, path, chunks, packed)
        return
    mode = 0o666 & ~_umask() if old_mode is None else stat.S_IMODE(old_mode)
    _replace(target, path, chunks, packed, mode)


def _write_into(target: Path, path: Path, chunks: Iterable[bytes], packed: bool) -> None:
    """Write into a pipe or a device."""
    try:
        with target.open("wb") as raw:
            _fill(raw, chunks, packed)
    except BrokenPipeError:
        raise
    except OSError as e:
        raise UsageError(f"{path} can't be written: {e.strerror or e}.", _FULL) from None


def _replace(target: Path, path: Path, chunks: Iterable[bytes], packed: bool, mode: int) -> None:
    """Write a new file and move it to `target`; `path` is the user's name for it."""
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".syncscan-")
    except OSError as e:
        hint = "Choose an existing folder that you can write to."
        raise UsageError(f"{path} can't be written: {e.strerror}.", hint) from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as raw:
            _fill(raw, chunks, packed)
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError as e:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"{path} can't be written: {e.strerror or e}.", _FULL) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _fill(raw: IO[bytes], chunks: Iterable[bytes], packed: bool) -> None:
    if not packed:
        _write_behind(raw.write, _batches(chunks))
        return
    from isal import igzip

    with igzip.GzipFile(fileobj=raw, mode="wb", compresslevel=2, mtime=0) as f:
        _write_behind(f.write, _batches(chunks))


def _write_behind(write: Callable[[bytes], object], batches: Iterator[bytes]) -> None:
    """Write each batch, several by a thread: the system and isal release the GIL meanwhile."""
    first, second = next(batches, b""), next(batches, b"")
    if not second:
        write(first)
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        writing: Future[object] = thread.submit(write, first)
        for batch in itertools.chain([second], batches):
            writing.result()
            writing = thread.submit(write, batch)
        writing.result()


def _batches(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes in parts large enough to pass on."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= _BATCH:
            yield b"".join(held) if len(held) > 1 else chunk
            held, size = [], 0
    if held:
        yield b"".join(held)


def _umask() -> int:
    """Return the user's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
