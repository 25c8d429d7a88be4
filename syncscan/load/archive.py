"""Read the files of a tar or zip as if they lay in a folder, without unpacking them to disk.

An issue's attachment is a zip, and the ranks of a job come as a tar. A file in one is named as in a folder:
`ranks.tar.gz/rank0.json`. Nothing is written, so no name or link in an archive leads anywhere; links, devices and
sparse files are passed over, and what unpacks to more than a thousand times its size is refused.
"""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Any, cast

from syncscan.errors import TraceNotFound, TraceUnreadable
from syncscan.load.unpack import reason, redacted

MOST_FILES = 10_000
"""Files in an archive that are listed."""
MOST_TIMES = 1_000
"""Times its size that an archive may unpack to; deflate reaches 1,032 with nothing but zeros, and traces 10 to 100."""
_LEAST = 1 << 26
"""Bytes that any archive may unpack to."""
_MOST_HEADER = 1 << 20
"""Longest extended header of a tar, which is read at once."""
_HINT = "Extract it, and give a trace in it."


class Archive:
    """An archive of either kind, for one pass over its files.

    A zip is read from `below`, its stored bytes, which can be read anywhere; a tar from `text`, its uncompressed ones.
    """

    def __init__(self, path: str, below: IO[bytes], text: io.RawIOBase, kind: str) -> None:
        self._name, self._below, self._text, self._kind = redacted(path), below, text, kind

    def files(self) -> Iterator[tuple[str, IO[bytes]]]:
        """Yield the name of each regular file with its bytes, which are read before the next is asked for."""
        try:
            for name, stream in self._zipped() if self._kind == "zip" else self._tarred():
                yield PurePosixPath(name.lstrip("/")).as_posix(), cast(Any, _Forward(stream))
        except (tarfile.TarError, zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError) as e:
            raise TraceUnreadable(f"{self._name} can't be read as a {self._kind}: {reason(e)}.", _HINT) from None

    def open(self, name: str) -> IO[bytes]:
        files = self.files()
        for found, stream in files:
            if found == name:
                return cast("IO[bytes]", _Forward(stream, (files, self._text, self._below)))
        raise TraceNotFound(f"{self._name} contains no {redacted(name)}.", "Check the name.")

    def _zipped(self) -> Iterator[tuple[str, IO[bytes]]]:
        with zipfile.ZipFile(self._below) as archive:
            listed = [info for info in archive.infolist() if not info.is_dir() and not _is_link(info)]
            self._refuse_many(len(listed))
            for info in listed:
                if info.file_size > MOST_TIMES * max(1, info.compress_size) + _LEAST:
                    raise self._too_large()
                yield info.filename, archive.open(info)

    def _tarred(self) -> Iterator[tuple[str, IO[bytes]]]:
        limited = cast(
            Any, _Limited(self._text, MOST_TIMES * os.fstat(self._below.fileno()).st_size + _LEAST, self._too_large)
        )
        with tarfile.open(fileobj=limited, mode="r|", tarinfo=_SmallHeaders) as archive:
            for count, info in enumerate(archive):
                self._refuse_many(count)
                vars(archive)["members"] = []  # what was passed isn't needed again
                if info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.issparse():
                    stream = archive.extractfile(info)
                    if stream is not None:
                        yield info.name, stream

    def _refuse_many(self, count: int) -> None:
        if count > MOST_FILES:
            raise TraceUnreadable(f"{self._name} contains more than {MOST_FILES:,} files.", _HINT)

    def _too_large(self) -> TraceUnreadable:
        return TraceUnreadable(f"{self._name} unpacks to more than {MOST_TIMES:,} times its size.", _HINT)


class _SmallHeaders(tarfile.TarInfo):
    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.type not in tarfile.REGULAR_TYPES and self.size > _MOST_HEADER:
            raise tarfile.ReadError("it has an extended header of more than a megabyte")
        return super()._proc_member(archive)  # type: ignore[misc]


class _Forward(io.RawIOBase):
    """A file of an archive, which can be read once from its begin to its end, or to where it is damaged."""

    def __init__(self, stream: IO[bytes], under: tuple[Any, ...] = ()) -> None:
        self._stream, self._under = stream, under

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            part = self._stream.read(len(buffer))
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error):
            return 0
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed:
            for thing in self._under:
                thing.close()
        super().close()


class _Limited(io.RawIOBase):
    """A stream that ends with an error after so many bytes."""

    def __init__(self, text: io.RawIOBase, most: int, error: Any) -> None:
        self._text, self._left, self._error = text, most, error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        got = self._text.readinto(buffer) or 0
        self._left -= got
        if self._left < 0:
            raise self._error()
        return int(got)


def _is_link(info: zipfile.ZipInfo) -> bool:
    return (info.external_attr >> 28) == 0o12
