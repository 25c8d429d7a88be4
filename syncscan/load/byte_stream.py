"""From a path to the uncompressed bytes of a trace: files, pipes, remote ones; plain, gzip or zstd by magic bytes."""

from __future__ import annotations

import io
import os
import re
import sys
import zlib
from pathlib import Path
from typing import IO, Any, cast

from syncscan.errors import MissingExtra, TraceNotFound, TraceUnreadable

_CHUNK = 1 << 16
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"


def open_bytes(path: str | os.PathLike[str]) -> ByteStream:
    """Open a trace for reading its uncompressed bytes, whatever it is packed in and wherever it lies.

    Args:
        path: a file, `-` for standard input, or a URL that fsspec opens (`s3://…`, with the extra `remote`).

    Raises:
        TraceNotFound, TraceUnreadable: there is nothing there, or nothing that can be opened.
        MissingExtra: a package for this kind of place or compression isn't installed.
    """
    name = os.fspath(path)
    raw, size = _opened(name)
    peekable = io.BufferedReader(cast(Any, raw), 1 << 16)
    try:
        magic = peekable.peek(4)[:4]
    except OSError as e:
        raise TraceUnreadable(f"{name} can't be read: {_reason(e)}.", "Check the file and the disk.") from None
    if magic[:2] == GZIP:
        return ByteStream(_Gunzip(peekable), name, size)
    if magic == ZSTD:
        return ByteStream(_Unzstd(peekable), name, size)
    return ByteStream(_Plain(peekable), name, size)


def _opened(name: str) -> tuple[IO[bytes], int]:
    """The file as it is stored, unbuffered, and its size in bytes; 0 where that isn't known."""
    try:
        if name == "-":
            return sys.stdin.buffer, 0
        if _REMOTE.match(name):
            return _remote(name)
        if Path(name).is_dir():
            raise TraceUnreadable(f"{name} is a folder.", "Name one of the traces in it.")
        raw = open(name, "rb", buffering=0)  # noqa: SIM115
        return raw, os.fstat(raw.fileno()).st_size
    except FileNotFoundError:
        raise TraceNotFound(f"{name}: no such file.", "Check the path.") from None
    except (OSError, ValueError) as e:
        raise TraceUnreadable(f"{name} can't be opened: {_reason(e)}.", "Check the path and its permissions.") from None


def _remote(name: str) -> tuple[IO[bytes], int]:
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"{name} needs fsspec.", "pip install 'syncscan[remote]'") from None
    try:
        file = fsspec.open(name, "rb").open()
        return file, int(getattr(file, "size", 0) or 0)
    except FileNotFoundError:
        raise
    except ImportError as e:
        raise MissingExtra(f"{name}: {e}.", "Install the package that fsspec asks for.") from None
    except Exception as e:  # a storage's own client raises whatever it likes
        raise TraceUnreadable(f"{name} can't be opened: {_reason(e)}.", "Check the address and your access.") from None


def _reason(e: BaseException) -> str:
    return str(getattr(e, "strerror", None) or e or type(e).__name__).rstrip(".")


class ByteStream(io.RawIOBase):
    """The uncompressed bytes of a trace as a readable stream, and how far it got."""

    def __init__(self, stream: _Plain, path: str, size: int) -> None:
        self._stream, self.path, self.size = stream, path, size

    @property
    def done(self) -> int:
        """Stored (packed) bytes that were read so far, of `size`."""
        return self._stream.bytes_read

    @property
    def text_size(self) -> int:
        """About how long the text is, in bytes: a packed trace shrinks to a tenth."""
        return self.size * (1 if type(self._stream) is _Plain else 10)

    @property
    def reopens(self) -> bool:
        """Whether the path opens the same bytes again: a file on this machine."""
        return Path(self.path).is_file()

    @property
    def lost(self) -> str:
        """What reading and unpacking lost so far, as a sentence; empty if nothing."""
        return self._stream.lost

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with as much as comes at once; 0 at the end."""
        return self._stream.into(memoryview(buffer).cast("B"))

    def close(self) -> None:
        """Close the file below, but for standard input."""
        if not self.closed and self.path != "-":
            self._stream.below.close()
        super().close()


class _Plain:
    """Bytes that aren't packed, and the base of those that are."""

    def __init__(self, below: io.BufferedReader) -> None:
        self.below, self.bytes_read, self.lost = below, 0, ""

    def into(self, view: memoryview) -> int:
        """Fill the view as far as it goes; 0 at the end."""
        return self.stored_into(view)

    def stored_into(self, view: memoryview) -> int:
        """The same for the bytes as they are stored."""
        try:
            got = self.below.readinto(view)
        except Exception as e:  # disks, networks and the clients of storages fail each in their own way
            self.lost = f"Reading failed after {self.bytes_read:,} bytes ({_reason(e)}); what comes after is missing."
            return 0
        self.bytes_read += got
        return got

    def stored(self, size: int) -> bytes:
        """Up to this many bytes as they are stored; empty at the end."""
        part = bytearray(size)
        return bytes(part[: self.stored_into(memoryview(part))])

    def ends(self, given: int, why: str) -> None:
        """Note that the stream is over before its end."""
        self.lost = self.lost or f"After {given:,} bytes {why}; what comes after is missing."


class _Gunzip(_Plain):
    """The members of a gzip file, one after the other; of a damaged one as much as can be unpacked."""

    def __init__(self, below: io.BufferedReader) -> None:
        super().__init__(below)
        self._packed = self._rest = b""
        self._given = 0
        self._open = True
        self._start()

    def _start(self) -> None:
        """Begin a member at the bytes that are at hand."""
        from isal import isal_zlib

        self._inflate: Any = isal_zlib.decompressobj(wbits=31)
        self._error: Any = isal_zlib.error
        self._member = (self.bytes_read - len(self._packed), self._given)

    def into(self, view: memoryview) -> int:
        while self._open and not self._rest:
            self._packed = self._packed or self.stored(_CHUNK)
            at_end = not self._packed
            self._rest = self._step(len(view))
            if at_end and self._open and not self._rest:
                self._open = False
                self.ends(self._given, "the compressed data break off")
        out, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(out)] = out
        self._given += len(out)
        return len(out)

    def _step(self, most: int) -> bytes:
        before = self.bytes_read
        try:
            out: bytes = self._inflate.decompress(self._packed, most)
        except self._error as e:
            self._open = False
            out = self._up_to_the_damage(before)
            if "checksum" in str(e):
                self.lost = "The checksum of the compressed data is wrong: something in the trace may be altered."
            else:
                self.ends(self._given + len(out), f"the compressed data are damaged ({e})")
            return out
        self._packed = self._inflate.unconsumed_tail
        if self._inflate.eof:
            self._packed = self._inflate.unused_data.lstrip(b"\0") or self.stored(_CHUNK).lstrip(b"\0")
            self._open = self._packed[:2] == GZIP
            if self._open:
                self._given += len(out)
                self._start()
                self._given -= len(out)
        return out

    def _up_to_the_damage(self, end: int) -> bytes:
        """What isal threw away with the chunk that it failed in, byte by byte through zlib; `end` is the chunk's.

        Empty where the stream can't go back to where the member began.
        """
        start, given = self._member
        if not self.below.seekable():
            return b""
        self.below.seek(start)
        inflate, out, skip = zlib.decompressobj(31), b"", self._given - given
        for packed in iter(lambda: self.below.read(min(_CHUNK, end - self.below.tell())), b""):
            before = inflate.copy()
            try:
                got = inflate.decompress(packed)
            except zlib.error:
                got = _slowly(before, packed)
            out, skip = out + got[skip:], max(0, skip - len(got))
        return out


def _slowly(inflate: Any, packed: bytes) -> bytes:
    out = b""
    try:
        for i in range(len(packed)):
            out += inflate.decompress(packed[i : i + 1])
    except zlib.error:
        pass
    return out


class _Unzstd(_Plain):
    """A zstd file."""

    def __init__(self, below: io.BufferedReader) -> None:
        super().__init__(below)
        try:
            import zstandard
        except ImportError:
            raise MissingExtra("This trace is packed with zstd.", "pip install 'syncscan[zstd]'") from None
        self._reader: Any = zstandard.ZstdDecompressor().stream_reader(
            cast(Any, _Stored(self)), read_across_frames=True
        )
        self._given = 0

    def into(self, view: memoryview) -> int:
        try:
            got = int(self._reader.readinto(view))
        except Exception as e:  # zstandard.ZstdError, which is imported only where it is needed
            self.ends(self._given, f"the compressed data are damaged ({e})")
            return 0
        self._given += got
        return got


class _Stored:
    """The stored bytes of a stream as zstandard wants to read them."""

    def __init__(self, stream: _Plain) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._stream.stored(_CHUNK if size < 0 else size)
