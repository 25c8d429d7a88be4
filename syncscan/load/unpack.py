"""Unpack a gzip, bzip2, xz or zstd file, also after damage, and report what is missing.

A message is shown, sent or stored without the secrets of addresses in it.
"""

from __future__ import annotations

import contextlib
import io
import re
import zlib
from collections.abc import Iterator
from typing import Any, ClassVar

from syncscan.errors import MissingExtra, installing

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<rest>[^\s\"'<>]*)")
_HIDDEN = "***"


def redacted(text: str) -> str:
    """Return the text with `user:password@` and the query of each URL hidden, where signatures and tokens are."""
    return _URL.sub(_without_secrets, text) if "://" in text else text


def _without_secrets(url: re.Match[str]) -> str:
    address, _, query = url["rest"].partition("?")
    place, slash, path = address.partition("/")
    user, _, host = place.rpartition("@")
    return f"{url['scheme']}{f'{_HIDDEN}@' if user else ''}{host}{slash}{path}{f'?{_HIDDEN}' if query else ''}"


class Stored:
    """Uncompressed bytes, and the base of compressed ones."""

    shrinks = 1.0
    """Approximate ratio of the stored size to the text's."""

    def __init__(self, below: io.BufferedReader) -> None:
        self.below, self.bytes_read, self.lost = below, 0, ""

    def into(self, view: memoryview) -> int:
        """Fill the view with text as far as available; return 0 at the end."""
        return self.stored_into(view)

    def stored_into(self, view: memoryview) -> int:
        """Fill the view with stored bytes as far as available; return 0 at the end."""
        try:
            got = self.below.readinto(view)
        except MemoryError:
            raise
        except Exception as e:  # disks, networks and storage clients all fail in their own ways
            self.lost = f"Reading failed after {self.bytes_read:,} bytes ({reason(e)}); the rest is missing."
            return 0
        self.bytes_read += got
        return got

    def stored(self, size: int) -> bytes:
        """Return up to this many stored bytes; empty at the end."""
        part = bytearray(size)
        return bytes(part[: self.stored_into(memoryview(part))])


def reason(error: BaseException) -> str:
    """Return an error's message for use within a sentence."""
    return redacted(str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip("."))


_CHUNK = 1 << 16
"""Stored bytes read at once."""
_MAGIC_BYTES = 6
"""Longest sequence that identifies a compression."""
_MOST_XZ_BYTES = 1 << 28
"""Memory that a decompressor of xz may take; `xz -9` asks for 65 MB."""
_BREAKS_OFF = "the compressed data is truncated"
_DAMAGED = "the compressed data is damaged"
_WRONG_CHECKSUM = "The checksum of the compressed data is wrong: the trace may be corrupted."
_NOT_PACKED = "Uncompressed bytes after the compressed data were ignored."
_IS_CHECKSUM = re.compile("checksum|(data|length) check")
_NO_MEMORY = re.compile("not enough memory|Error -4 while")
"""Out-of-memory messages of zstandard and zlib, which both report as ordinary errors."""


def stored_as(below: io.BufferedReader, first: bytes) -> Stored:
    """Return a reader of the text of stored bytes, compressed or not, chosen by the first six of them."""
    kinds = (_Gunzip, _Unzstd, _Bunzip2, _Unxz)
    return next((kind for kind in kinds if kind.MAGIC.match(first)), Stored)(below)


class _Packed(Stored):
    """Compressed bytes, one part after another, unpacked in portions; damaged ones as far as possible."""

    shrinks = 1 / 10
    """Approximate compression, to a twelfth (benchmarks/README.md) or less."""
    MAGIC: ClassVar[re.Pattern[bytes]]
    """Pattern of the first bytes of such a file, and of what may follow a part."""
    portions: ClassVar[tuple[int, int]] = (1 << 10, 64)
    """Stored bytes unpacked at once, of a file and of a pipe, where the text of a damaged portion can't be recovered.

    Few, since little may become much text: 128 kB from each four bytes of zstd.
    """

    def __init__(self, below: io.BufferedReader) -> None:
        super().__init__(below)
        self._packed = b""
        """Stored bytes read but not yet unpacked."""
        self._unpacked = b""
        """Text unpacked but not yet requested."""
        self._unpacked_bytes = 0
        self._over = False
        self._rewinds = below.seekable()
        self._portion = self.portions[0 if self._rewinds else 1]
        self._begin_part()

    def into(self, view: memoryview) -> int:
        while not self._over and not self._unpacked:
            self._unpacked = self._unpack()
            self._unpacked_bytes += len(self._unpacked)
        out, self._unpacked = self._unpacked[: len(view)], self._unpacked[len(view) :]
        view[: len(out)] = out
        return len(out)

    def _unpack(self) -> bytes:
        """Return the text of the next portion; empty if there is none yet, or no more (`_over`)."""
        packed = self._packed or self.stored(self._portion)
        portion, self._packed = packed[: self._portion], packed[self._portion :]
        if not portion:
            self._over = True
            if self._part[0] < self.bytes_read:
                self._ends_early(_BREAKS_OFF)
            return b""
        try:
            out = _unpacked(self._unpacker, portion)
        except _Refused as e:
            return self._damaged(portion, str(e))
        if self._unpacker.eof:
            self._next_part(len(out))
        return out

    def _new_unpacker(self) -> Any:
        raise NotImplementedError

    def _usual_unpacker(self) -> Any:
        return self._new_unpacker()

    def _begin_part(self, ahead: int = 0) -> None:
        """Begin a part at the available compressed bytes; text `ahead` of it (bytes, unpacked) isn't counted yet."""
        self._unpacker = self._usual_unpacker()
        self._part = (self.bytes_read - len(self._packed), self._unpacked_bytes + ahead)

    def _next_part(self, ahead: int) -> None:
        """Continue after a part with the next one, after zeros that pad it."""
        packed = (self._unpacker.unused_data + self._packed).lstrip(b"\0")
        while len(packed) < _MAGIC_BYTES and (more := self.stored(_CHUNK)):
            packed = (packed + more).lstrip(b"\0")
        self._packed = packed
        self._begin_part(ahead)
        if packed and not self.MAGIC.match(packed):
            self.lost, self._over = self.lost or _NOT_PACKED, True

    def _damaged(self, portion: bytes, error: str) -> bytes:
        """Return the text before the damage, in a pipe without the portion's; what comes after it isn't read."""
        out = self._again(len(portion)) if self._rewinds else b""
        self._over = True
        if _IS_CHECKSUM.search(error):
            self.lost = self.lost or _WRONG_CHECKSUM
        else:
            self._ends_early(f"{_DAMAGED} ({error})", len(out))
        return out

    def _ends_early(self, why: str, ahead: int = 0) -> None:
        self.lost = self.lost or f"After {self._unpacked_bytes + ahead:,} bytes {why}; what comes after is missing."

    def _again(self, size: int) -> bytes:
        """Return the text that a decompressor dropped with the portion of this size in which it failed."""
        start, already = self._part
        end = self.bytes_read - len(self._packed)
        remaining, unpacker, parts = self._unpacked_bytes - already, self._new_unpacker(), []
        with _as_far_as_it_goes():  # the file may have changed, or can't be read again
            self.below.seek(start)
            while (left := end - size - self.below.tell()) > 0:
                text = _unpacked(unpacker, self.below.read(min(_CHUNK, left)))
                parts.append(text[remaining:])
                remaining = max(0, remaining - len(text))
            parts.append(_before_the_damage(unpacker, self.below.read(size))[remaining:])
        with _as_far_as_it_goes():
            self.below.seek(self.bytes_read)
        return b"".join(parts)


@contextlib.contextmanager
def _as_far_as_it_goes() -> Iterator[None]:
    """Ignore all errors except exhausted memory."""
    try:
        yield
    except MemoryError:
        raise
    except Exception:
        pass


class _Refused(Exception):
    """A decompressor's error for bytes that it can't unpack."""


def _unpacked(unpacker: Any, packed: bytes) -> bytes:
    """Return the text that a decompressor makes of these bytes; `_Refused` if they are damaged."""
    try:
        out: bytes = unpacker.decompress(packed)
    except MemoryError:
        raise
    except Exception as e:  # zlib.error, isal's or zstandard's own error, imported only where needed
        if _NO_MEMORY.search(str(e)):
            raise MemoryError(str(e)) from None
        raise _Refused(str(e)) from None
    return out


def _before_the_damage(unpacker: Any, packed: bytes) -> bytes:
    """Return the text before the damage in these bytes, unpacked one at a time so that nothing is dropped."""
    parts = []
    with contextlib.suppress(_Refused):
        for i in range(len(packed)):
            parts.append(_unpacked(unpacker, packed[i : i + 1]))
    return b"".join(parts)


class _Gunzip(_Packed):
    """The members of a gzip file; isal unpacks eight times as fast as zlib (benchmarks/README.md)."""

    MAGIC = re.compile(rb"\x1f\x8b")
    portions = (1 << 13, 256)

    def _new_unpacker(self) -> Any:
        return zlib.decompressobj(31)

    def _usual_unpacker(self) -> Any:
        from isal import isal_zlib

        return isal_zlib.decompressobj(wbits=31)


class _Unzstd(_Packed):
    MAGIC = re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")
    """A frame, or a skippable one (RFC 8878, 3.1.2); parallel packers put one with sizes before each other."""

    def __init__(self, below: io.BufferedReader) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingExtra("This trace is compressed with zstd.", installing("zstd")) from None
        self._decompressor = zstandard.ZstdDecompressor()
        super().__init__(below)

    def _new_unpacker(self) -> Any:
        return self._decompressor.decompressobj()


class _Bunzip2(_Packed):
    MAGIC = re.compile(rb"BZh[1-9]")

    def _new_unpacker(self) -> Any:
        import bz2

        return bz2.BZ2Decompressor()


class _Unxz(_Packed):
    MAGIC = re.compile(rb"\xfd7zXZ\x00")

    def _new_unpacker(self) -> Any:
        import lzma

        return lzma.LZMADecompressor(memlimit=_MOST_XZ_BYTES)
