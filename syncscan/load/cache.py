"""Store a linked Trace in a cache file beside the trace, and read it back while the file is unchanged."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
from isal import isal_zlib
from msgspec.structs import replace

from syncscan.load import memory_check
from syncscan.load.saved import linked, require
from syncscan.model.saved import SavedTrace
from syncscan.model.trace import Trace
from syncscan.version import __version__

_PIECE = 1 << 20


class _Of(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file that a cache belongs to, and the version that wrote this."""

    syncscan: str
    """syncscan's version; another one may read a trace differently."""
    size: int
    written_ns: int
    crc32: int
    """Checksum of all its bytes, since a file can be rewritten within one tick of the clock and with the same size."""


class _CacheHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """First line of the cache file."""

    of: _Of
    drawn: bool
    """See `TraceInfo.drawn`."""


class Cache(msgspec.Struct, frozen=True):
    """The cache of one trace: its location, and the file that it must belong to."""

    trace: str
    place: Path
    of: _Of

    def read(self, max_memory: int | None) -> Trace | None:
        """Return the cached trace; None if there is none for exactly this file, or it is damaged.

        Args:
            max_memory: bytes that this and analyzing may take; by default most of what is free.

        Raises:
            TraceTooLarge: it doesn't fit.
        """
        most = memory_check.available() if max_memory is None else max_memory
        try:
            line, _, body = self.place.read_bytes().partition(b"\n")
            head = msgspec.json.decode(line, type=_CacheHead)
            if head.of != self.of:
                return None
            saved = msgspec.json.decode(body, type=SavedTrace)
            require(saved, self.trace, most)
            trace = linked(saved)
        except (OSError, msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
            return None
        return replace(trace, info=replace(trace.info, path=self.trace, drawn=head.drawn))

    def content(self, trace: SavedTrace, drawn: bool) -> Iterator[bytes]:
        """Yield the content of `place` for this trace, which may be an annotated copy."""
        yield msgspec.json.encode(_CacheHead(of=self.of, drawn=drawn)) + b"\n"
        yield msgspec.json.encode(trace)

    @property
    def up_to_date(self) -> bool:
        """Whether the file is unchanged by size and time; it may be written meanwhile."""
        try:
            now = Path(self.trace).stat()
        except OSError:
            return False
        return (now.st_size, now.st_mtime_ns) == (self.of.size, self.of.written_ns)


def cache_beside(path: str | os.PathLike[str]) -> Cache | None:
    """Return a trace's cache, `.NAME.syncscan-cache` in the same folder; None if it isn't a file on this machine."""
    name = os.fspath(path)
    try:
        status = Path(name).stat()
        if not stat.S_ISREG(status.st_mode):
            return None
        of = _Of(syncscan=__version__, size=status.st_size, written_ns=status.st_mtime_ns, crc32=_crc32(name))
    except (OSError, ValueError):
        return None
    return Cache(name, Path(name).parent / f".{Path(name).name}.syncscan-cache", of)


def _crc32(name: str) -> int:
    crc = 0
    with open(name, "rb") as file:
        while piece := file.read(_PIECE):
            crc = isal_zlib.crc32(piece, crc)
    return crc


__all__ = ["Cache", "cache_beside"]
