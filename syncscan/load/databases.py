"""Traces that are databases: exports of Nsight Systems, wherever they are stored, and its own reports."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from syncscan.errors import TraceNotFound, TraceUnreadable
from syncscan.load.byte_stream import ByteStream, open_bytes, within
from syncscan.load.unpack import reason, redacted

if TYPE_CHECKING:
    from syncscan.model.trace import Trace

Progress = Callable[[int, int], None]
_MAGIC = b"SQLite format 3\x00"
_REPORT = re.compile(r".+\.(nsys-rep|qdrep)", re.IGNORECASE)
_PID = re.compile(r"\d{1,8}", re.ASCII)
_PIECE = 1 << 20


def is_database(begin: bytes) -> bool:
    """Return whether a file with this begin is an SQLite database, as every export of Nsight Systems is."""
    return begin.startswith(_MAGIC)


def begins_like_an_export(begin: bytes) -> bool:
    """Return whether the first pages of a file are those of an export; its first table is that of the strings."""
    return is_database(begin) and b"StringIds" in begin


def named_as_report(path: str) -> bool:
    """Return whether a path is that of a report of Nsight Systems, `NAME.nsys-rep`, which only nsys can read."""
    return _REPORT.fullmatch(path) is not None


def process_in(path: str) -> tuple[str, str | None]:
    """Return a file's path and the pid of the process to read of it, for `EXPORT/PID`; None for any other path."""
    inside = within(path)
    if inside is None or not _PID.fullmatch(inside[1]):
        return path, None
    with open_bytes(inside[0]) as stream:
        return inside if is_database(stream.peek(len(_MAGIC))) else (path, None)


def ranks_in(path: str) -> list[str]:
    """Return the traces of a job in a file: `EXPORT/PID` for each process of an export that launched work, if several.

    Any other file is one trace.
    """
    if ".json" in Path(path).name or named_as_report(path) or not os.path.isfile(path):  # noqa: PTH113  as in folder
        return [path]
    with open_bytes(path) as stream:
        if not is_database(stream.peek(len(_MAGIC))):
            return [path]
        from syncscan.load import nsys

        with _Stored(stream, path) as stored:
            pids = nsys.processes_in(stored.path)
    return [f"{path}/{pid}" for pid in pids] if len(pids) > 1 else [path]


def read(
    stream: ByteStream,
    path: str,
    named: str | None,
    process: str | None,
    progress: Progress | None,
    max_memory: int | None,
) -> Trace:
    """Read an export; of several processes the one that its path `named`, or else as `nsys.read` does."""
    from syncscan.load import nsys

    with _Stored(stream, path) as stored:
        if named is not None:
            return nsys.read_process(stored.path, path, named, progress, max_memory)
        return nsys.read(stored.path, path, process, progress, max_memory)


def read_report(path: str, process: str | None, progress: Progress | None, max_memory: int | None) -> Trace:
    """Export a report of Nsight Systems by nsys into a folder that is removed again, and read that."""
    import shutil
    import subprocess
    import tempfile

    from syncscan.load import nsys

    if not Path(path).is_file():
        raise TraceNotFound(f"{redacted(path)}: no such file.", "Check the path.")
    program = shutil.which("nsys")
    if program is None:
        raise TraceUnreadable(
            f"{path} is a report of Nsight Systems, which only nsys reads, and nsys isn't on the PATH.",
            f"Run `nsys export --type sqlite {path}` where it is installed, and give the .sqlite file.",
        )
    with tempfile.TemporaryDirectory(prefix="syncscan-") as folder:
        export = str(Path(folder, "report.sqlite"))
        ran = subprocess.run(
            [program, "export", "--type", "sqlite", "--output", export, str(Path(path).absolute())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if ran.returncode or not Path(export).is_file():
            lines = (ran.stderr or ran.stdout).decode("utf-8", "replace").strip().splitlines()
            raise TraceUnreadable(f"nsys can't export {path}: {lines[-1][:200] if lines else 'it says nothing'}.")
        return nsys.read(export, path, process, progress, max_memory)


class _Stored:
    """A database as a file of its own: itself, or a copy of what is compressed, in an archive, piped or remote."""

    def __init__(self, stream: ByteStream, path: str) -> None:
        self._stream, self.path, self._folder = stream, path, ""

    def __enter__(self) -> _Stored:
        if self._is_plain():
            return self
        import tempfile  # here and below: no other trace needs them

        self._folder = tempfile.mkdtemp(prefix="syncscan-")
        name, self.path = self.path, str(Path(self._folder, "export.sqlite"))
        try:
            with Path(self.path).open("wb") as copy:
                while piece := self._stream.read(_PIECE):
                    copy.write(piece)
        except OSError as e:
            self.__exit__()
            raise TraceUnreadable(f"{redacted(name)} can't be unpacked: {reason(e)}.", "Unpack it yourself.") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)

    def _is_plain(self) -> bool:
        try:
            with Path(self.path).open("rb") as file:
                return is_database(file.read(len(_MAGIC)))
        except (OSError, ValueError):
            return False
