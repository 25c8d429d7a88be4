"""From a path to the uncompressed bytes of a trace: files, pipes, remote ones; plain, gzip or zstd by magic bytes."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from syncscan.errors import MissingExtra, TraceNotFound, TraceUnreadable

_CHUNK = 1 << 16
"""Stored bytes that are read and unpacked at once."""
_ZSTD_PORTION = 1 << 10
"""Stored bytes that zstandard unpacks at once: what comes of them has no bound but its 128 kB a block of four bytes."""
_ZSTD_PIPE_PORTION = 64
"""The same in a pipe, where what a damaged portion gave can't be had again."""
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
"""How a frame begins that holds no text (RFC 8878, 3.1.2): parallel packers put one with sizes before each other."""
_MEMBER = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]")
_FRAME = re.compile(rb"\x28\xb5\x2f\xfd")
_MOST_SEARCHES = 16
"""How often a file is searched again from the begin of a damaged part: each time may cost as much as all behind it."""
_PROOF = 256
"""Packed bytes that must unpack for a place behind damage to count as the begin of a member or a frame."""


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
    try:
        return ByteStream(_unpacked_as_needed(raw, name), name, size)
    except BaseException:
        if name != "-":
            raw.close()
        raise


def _unpacked_as_needed(raw: IO[bytes], name: str) -> _Plain:
    """What unpacks these stored bytes, told by the first of them."""
    peekable = io.BufferedReader(cast(Any, raw), 1 << 16)
    try:
        magic = peekable.peek(4)[:4]
    except MemoryError:
        raise
    except Exception as e:  # disks, networks and the clients of storages fail each in their own way
        raise TraceUnreadable(f"{name} can't be read: {_reason(e)}.", "Check the file and the disk.") from None
    if magic[:2] == GZIP:
        return _Gunzip(peekable)
    if magic == ZSTD or _ZSTD_SKIPPABLE.match(magic):
        return _Unzstd(peekable)
    return _Plain(peekable)


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
    except (FileNotFoundError, MemoryError):
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
        """About how long the text is, in bytes: a packed trace shrinks to a twelfth (benchmarks/README.md) or less."""
        return self.size * (1 if type(self._stream) is _Plain else 10)

    @property
    def reopens(self) -> bool:
        """Whether the path opens the same bytes again: a file on this machine."""
        return Path(self.path).is_file()

    @property
    def lost(self) -> str:
        """What reading and unpacking lost so far, as a sentence; empty if nothing."""
        return self._stream.lost

    def end_at(self, size: int) -> None:
        """Read no further than this many stored bytes, whatever is appended meanwhile."""
        self._stream.end = size

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
        self.end: int | None = None
        """No stored byte is read from here on."""

    def into(self, view: memoryview) -> int:
        """Fill the view as far as it goes; 0 at the end."""
        return self.stored_into(view)

    def stored_into(self, view: memoryview) -> int:
        """The same for the bytes as they are stored."""
        if self.end is not None:
            view = view[: max(0, self.end - self.bytes_read)]
        try:
            got = self.below.readinto(view)
        except MemoryError:
            raise
        except Exception as e:  # disks, networks and the clients of storages fail each in their own way
            self.lost = f"Reading failed after {self.bytes_read:,} bytes ({_reason(e)}); what comes after is missing."
            return 0
        self.bytes_read += got
        return got

    def stored(self, size: int) -> bytes:
        """Up to this many bytes as they are stored; empty at the end."""
        part = bytearray(size)
        return bytes(part[: self.stored_into(memoryview(part))])

    def ends(self, given: int, why: str, goes_on: bool = False) -> None:
        """Note that the stream is over before its end, or that a part of it is missing."""
        missing = "what comes after, up to the next packed part," if goes_on else "what comes after"
        self.lost = self.lost or f"After {given:,} bytes {why}; {missing} is missing."


class _Packed(_Plain):
    """Compressed bytes, unpacked a portion at a time; of damaged ones as much as can be unpacked."""

    def __init__(self, below: io.BufferedReader) -> None:
        super().__init__(below)
        self._packed = b""
        """Stored bytes that were read and not yet unpacked."""
        self._unpacked = b""
        """Text that was unpacked and not yet asked for."""
        self._unpacked_bytes = 0
        self._over = False
        self._rewinds = below.seekable()
        self._searches = 0

    def into(self, view: memoryview) -> int:
        while not self._over and not self._unpacked:
            self._unpacked = self._unpack(len(view))
            self._unpacked_bytes += len(self._unpacked)
        out, self._unpacked = self._unpacked[: len(view)], self._unpacked[len(view) :]
        view[: len(out)] = out
        return len(out)

    def _unpack(self, most: int) -> bytes:
        """The next text, about this long at most; empty if there is none yet, or no more (`_over`)."""
        raise NotImplementedError

    def _behind_damage(self, begin: re.Pattern[bytes], unpacker: Callable[[], Any], start: int) -> bool:
        """Go on to the next place where a part begins that unpacks; false, and over, if there is none.

        A part that was cut short takes what comes behind it for its own: a file is searched from its begin on again.

        Args:
            begin: how a part begins.
            unpacker: makes one for a part.
            start: where the damaged part begins, among the stored bytes.
        """
        packed = self._packed[1:]
        if self._rewinds and self._searches < _MOST_SEARCHES:
            packed, self.bytes_read = b"", start + 1
            self.below.seek(start + 1)
        self._searches += 1
        at = 0
        while True:
            found = begin.search(packed, at)
            if found is None:
                more = self.stored(_CHUNK)
                if not more:
                    self._over, self._packed = True, b""
                    return False
                packed, at = packed[-3:] + more, 0
                continue
            at = found.start()
            while len(packed) - at < _PROOF and (more := self.stored(_CHUNK)):
                packed, at = packed[at:] + more, 0
            if _unpacks(unpacker(), packed[at : at + _PROOF]):
                self._packed = packed[at:]
                return True
            at += 1

    def _again(self, unpacker: Any, start: int, already: int, end: int) -> bytes:
        """What a decompressor threw away with the portion that it failed in.

        Args:
            unpacker: a new one, for what begins at `start`.
            start: where the bytes begin that are unpacked again, among those stored.
            already: how much text is known of what begins there, in bytes.
            end: where the portion ends; it is no longer than `_CHUNK`.
        """
        sound = max(start, end - _CHUNK)
        parts: list[bytes] = []
        with _as_far_as_it_goes():  # the file may have changed, or can't be read a second time
            self.below.seek(start)
            while (left := sound - self.below.tell()) > 0:
                text = _unpacked(unpacker, self.below.read(min(_CHUNK, left)))
                parts.append(text[already:])
                already = max(0, already - len(text))
            parts.append(_before_the_damage(unpacker, self.below.read(end - sound))[already:])
        with _as_far_as_it_goes():
            self.below.seek(end)
        return b"".join(parts)


@contextlib.contextmanager
def _as_far_as_it_goes() -> Iterator[None]:
    """Pass over whatever goes wrong, but for a want of memory."""
    try:
        yield
    except MemoryError:
        raise
    except Exception:
        pass


class _Refused(Exception):
    """What a decompressor says of bytes that it can't unpack."""


_NO_MEMORY = re.compile("not enough memory|Error -4 while")
"""How zstandard and zlib say that they got none; for both it is an error like any other."""


def _unpacked(unpacker: Any, packed: bytes, *most: int) -> bytes:
    """What a decompressor makes of these bytes.

    Raises:
        _Refused: they are damaged.
        MemoryError: there is too little of it.
    """
    try:
        out: bytes = unpacker.decompress(packed, *most)
    except MemoryError:
        raise
    except Exception as e:  # zlib.error, isal's or zstandard's own, imported only where they are needed
        if _NO_MEMORY.search(str(e)):
            raise MemoryError(str(e)) from None
        raise _Refused(str(e)) from None
    return out


def _unpacks(unpacker: Any, packed: bytes) -> bool:
    try:
        _unpacked(unpacker, packed)
    except _Refused:
        return False
    return True


def _before_the_damage(unpacker: Any, packed: bytes) -> bytes:
    """What comes out of these bytes before the damage in them: taken one at a time, so that nothing is thrown away."""
    parts = []
    with contextlib.suppress(_Refused):
        for i in range(len(packed)):
            parts.append(_unpacked(unpacker, packed[i : i + 1]))
    return b"".join(parts)


class _Gunzip(_Packed):
    """The members of a gzip file, one after the other.

    isal unpacks eight times as fast as zlib (benchmarks/README.md), but throws away what it made of a chunk that it
    fails in. A file is then unpacked again; in a pipe zlib does it all, whose state can be copied before each chunk.
    """

    def __init__(self, below: io.BufferedReader) -> None:
        super().__init__(below)
        self._begin_member()

    def _begin_member(self) -> None:
        """Begin a member at the packed bytes that are at hand."""
        self._unpacker: Any = _isal_unpacker() if self._rewinds else zlib.decompressobj(31)
        self._member = (self.bytes_read - len(self._packed), self._unpacked_bytes)

    def _unpack(self, most: int) -> bytes:
        self._packed = self._packed or self.stored(_CHUNK)
        at_end = not self._packed
        before = None if self._rewinds else self._unpacker.copy()
        try:
            out = _unpacked(self._unpacker, self._packed, most)
        except _Refused as e:
            return self._damaged(e, before)
        self._packed = self._unpacker.unconsumed_tail
        if self._unpacker.eof:
            self._unpacked_bytes += len(out)
            self._next_member()
            self._unpacked_bytes -= len(out)
        elif at_end and not out:
            self._goes_on("the compressed data break off", b"")
        return out

    def _goes_on(self, why: str, out: bytes) -> None:
        """Say what is missing behind this text, and go on at the next member, if there is one."""
        behind = self._behind_damage(_MEMBER, lambda: zlib.decompressobj(31), self._member[0])
        if why:
            self.ends(self._unpacked_bytes + len(out), why, behind)
        self._unpacked_bytes += len(out)
        self._begin_member()
        self._unpacked_bytes -= len(out)

    def _next_member(self) -> None:
        """Go on behind a member: to the next one, over zeros that pad it, or to the end."""
        packed = self._unpacker.unused_data.lstrip(b"\0")
        while len(packed) < len(GZIP) and (more := self.stored(_CHUNK)):
            packed = (packed + more).lstrip(b"\0")
        self._packed = packed
        if packed.startswith(GZIP):
            self._begin_member()
            return
        self._over = True
        if packed:
            self.lost = self.lost or "Behind the compressed data stand bytes that aren't; they are left out."

    def _damaged(self, error: _Refused, before: Any) -> bytes:
        """What comes before the damage in the chunk at hand; behind it goes on the next member, if there is one."""
        if before is None:
            start, unpacked = self._member
            out = self._again(zlib.decompressobj(31), start, self._unpacked_bytes - unpacked, self.bytes_read)
        else:
            out = _before_the_damage(before, self._packed)
        if re.search(r"checksum|(data|length) check", str(error)):
            self.lost = self.lost or _WRONG_CHECKSUM
            self._goes_on("", out)
        else:
            self._goes_on(f"the compressed data are damaged ({error})", out)
        return out


_WRONG_CHECKSUM = "The checksum of the compressed data is wrong: something in the trace may be altered."


def _isal_unpacker() -> Any:
    from isal import isal_zlib

    return isal_zlib.decompressobj(wbits=31)


class _Unzstd(_Packed):
    """The frames of a zstd file, one after the other."""

    def __init__(self, below: io.BufferedReader) -> None:
        super().__init__(below)
        try:
            import zstandard
        except ImportError:
            raise MissingExtra("This trace is packed with zstd.", "pip install 'syncscan[zstd]'") from None
        self._new_unpacker: Any = zstandard.ZstdDecompressor().decompressobj
        self._begin_frame()

    def _begin_frame(self) -> None:
        self._unpacker: Any = self._new_unpacker()
        self._frame = (self.bytes_read - len(self._packed), self._unpacked_bytes)

    def _unpack(self, most: int) -> bytes:
        self._packed = self._packed or self.stored(_ZSTD_PORTION if self._rewinds else _ZSTD_PIPE_PORTION)
        if not self._packed:
            self._over = True
            if self._frame[0] < self.bytes_read:
                self._goes_on("the compressed data break off", b"")
            return b""
        try:
            out = _unpacked(self._unpacker, self._packed)
        except _Refused as e:
            return self._damaged(e)
        self._packed = b""
        if self._unpacker.eof:
            self._packed = self._unpacker.unused_data
            self._unpacked_bytes += len(out)
            self._begin_frame()
            self._unpacked_bytes -= len(out)
        return out

    def _damaged(self, error: _Refused) -> bytes:
        """What comes before the damage; in a pipe without what the damaged portion gave before it.

        Behind it goes on the next frame, if there is one.
        """
        start, unpacked = self._frame
        out = b""
        if self._rewinds:
            out = self._again(self._new_unpacker(), start, self._unpacked_bytes - unpacked, self.bytes_read)
        self._goes_on(f"the compressed data are damaged ({error})", out)
        return out

    def _goes_on(self, why: str, out: bytes) -> None:
        """Say what is missing behind this text, and go on at the next frame, if there is one."""
        behind = self._behind_damage(_FRAME, self._new_unpacker, self._frame[0])
        self.ends(self._unpacked_bytes + len(out), why, behind)
        self._unpacked_bytes += len(out)
        self._over = not behind
        self._begin_frame()
        self._unpacked_bytes -= len(out)
