"""Open a trace's uncompressed bytes: files, also in archives, pipes, remote ones; compressed or not, by magic bytes."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

from syncscan.errors import MissingExtra, TraceNotFound, TraceUnreadable, installing
from syncscan.load.unpack import Stored, reason, redacted, stored_as

if TYPE_CHECKING:
    from syncscan.load.archive import Archive


_TAR_MAGIC = slice(257, 262)


def kind_of(begin: bytes) -> str:
    """Return "zip" or "tar" for the first 512 bytes of an archive, unpacked if it is compressed; "" for others."""
    if begin.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "tar" if begin[_TAR_MAGIC] == b"ustar" else ""


def within(path: str) -> tuple[str, str] | None:
    """Return the file on the way to a path and the rest of the path, `/`-separated; None if no file is on the way."""
    parents = list(Path(path).parents)[:-1] if not os.path.lexists(path) else []
    for parent in parents:
        if parent.is_file():
            return str(parent), Path(path).relative_to(parent).as_posix()
        if parent.is_dir():
            return None
    return None


def is_litter(name: str) -> bool:
    """Return whether a file in an archive holds what macOS keeps about another one."""
    path = PurePosixPath(name)
    return path.name.startswith("._") or "__MACOSX" in path.parts


_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")
MAGIC = 6
"""Bytes that identify gzip (2), bzip2 (3), zstd (4) and xz (6)."""
_ARCHIVE_MAGIC = 512
"""Bytes that identify a tar: its first header."""


def open_bytes(path: str | os.PathLike[str]) -> ByteStream:
    """Open a trace for reading its uncompressed bytes, whatever its compression and location; for paths see `load`."""
    name = os.fspath(path)
    raw, size = _open(name)
    try:
        return ByteStream(_unpacker_of(raw, name), name, size)
    except BaseException:
        if name != "-":
            raw.close()
        raise


def in_memory(stored: bytes, name: str) -> ByteStream:
    """Return the uncompressed text of some bytes, possibly only the first ones of a trace."""
    return ByteStream(_unpacker_of(io.BytesIO(stored), name), name, len(stored))


def _unpacker_of(raw: IO[bytes], name: str) -> Stored:
    """Return what unpacks these stored bytes, identified by the first of them."""
    borrowed = name == "-"
    below = raw if raw.seekable() and not borrowed else _Pipe(raw, borrowed)
    peekable = io.BufferedReader(cast(Any, below), 1 << 16)
    try:
        magic = peekable.peek(MAGIC)[:MAGIC]
    except MemoryError:
        raise
    except Exception as e:  # disks, networks and storage clients all fail in their own ways
        raise TraceUnreadable(f"{redacted(name)} can't be read: {reason(e)}.", "Check the file and the disk.") from None
    return stored_as(peekable, magic)


def _open(name: str) -> tuple[IO[bytes], int]:
    """Return the file as stored, unbuffered, and its size in bytes; 0 if unknown."""
    try:
        if name == "-":
            return sys.stdin.buffer, 0
        if _REMOTE.match(name):
            return _remote(name)
        if Path(name).is_dir():
            raise TraceUnreadable(f"{redacted(name)} is a folder.", "Give one of the traces in it.")
        if (inside := within(name)) is not None and (archive := opened_archive(inside[0])) is not None:
            return archive.open(inside[1]), 0
        raw = open(name, "rb", buffering=0)  # noqa: SIM115
        return raw, os.fstat(raw.fileno()).st_size
    except FileNotFoundError:
        raise TraceNotFound(f"{redacted(name)}: no such file.", "Check the path.") from None
    except (OSError, ValueError) as e:
        raise TraceUnreadable(
            f"{redacted(name)} can't be opened: {reason(e)}.", "Check the path and its permissions."
        ) from None


def opened_archive(path: str) -> Archive | None:
    """Return a file as a tar or zip; None if it is neither."""
    text = _opened_text(path)
    kind = kind_of(text.peek(_ARCHIVE_MAGIC))
    if not kind:
        text.close()
        return None
    from syncscan.load.archive import Archive  # tarfile takes some milliseconds

    return Archive(path, open(path, "rb"), text, kind)


def _opened_text(path: str) -> ByteStream:
    raw = open(path, "rb", buffering=0)  # noqa: SIM115
    return ByteStream(_unpacker_of(raw, path), path, os.fstat(raw.fileno()).st_size)


def _remote(name: str) -> tuple[IO[bytes], int]:
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"{redacted(name)} needs fsspec.", installing("remote")) from None
    try:
        file = fsspec.open(name, "rb").open()
        return file, int(getattr(file, "size", 0) or 0)
    except (FileNotFoundError, MemoryError):
        raise
    except ImportError as e:
        raise MissingExtra(f"{redacted(name)}: {reason(e)}.", "Install the package that fsspec asks for.") from None
    except Exception as e:  # a storage client may raise anything
        raise TraceUnreadable(
            f"{redacted(name)} can't be opened: {reason(e)}.", "Check the address and your access."
        ) from None


class _Pipe(io.RawIOBase):
    """A pipe whose reads return at least `MAGIC` bytes, as long as there are any."""

    def __init__(self, raw: IO[bytes], borrowed: bool) -> None:
        self._raw, self._borrowed = cast(io.RawIOBase, raw), borrowed

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._raw.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._raw.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        view, got = memoryview(buffer).cast("B"), 0
        while got < min(MAGIC, len(view)):
            more = self._raw.readinto(view[got:])
            if not more:
                break
            got += more
        return got

    def close(self) -> None:
        if not self.closed and not self._borrowed:
            self._raw.close()
        super().close()


class ByteStream(io.RawIOBase):
    """The uncompressed bytes of a trace as a readable stream, with the progress of reading."""

    def __init__(self, stream: Stored, path: str, size: int) -> None:
        self._stream, self.path, self.size = stream, path, size
        self._ahead = b""

    @property
    def done(self) -> int:
        """Stored (compressed) bytes read so far, of `size`."""
        return self._stream.bytes_read

    @property
    def text_size(self) -> int:
        """Approximate length of the text, in bytes."""
        return round(self.size / self._stream.shrinks)

    @property
    def lost(self) -> str:
        """A sentence about data lost by reading and unpacking so far; empty if none."""
        return self._stream.lost

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with as much as comes at once; 0 at the end."""
        view = memoryview(buffer).cast("B")
        if not self._ahead:
            return self._stream.into(view)
        given, self._ahead = self._ahead[: len(view)], self._ahead[len(view) :]
        view[: len(given)] = given
        return len(given)

    def peek(self, size: int) -> bytes:
        """Return the next bytes, up to this many, without consuming them."""
        while len(self._ahead) < size:
            more = bytearray(size - len(self._ahead))
            got = self._stream.into(memoryview(more))
            if not got:
                break
            self._ahead += bytes(more[:got])
        return self._ahead[:size]

    def close(self) -> None:
        """Close the underlying stream; standard input stays open."""
        if not self.closed:
            self._stream.below.close()
        super().close()
