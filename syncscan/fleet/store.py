"""Store the ranks of a job in files as soon as they are available, and read them back.

A stored rank is valid while the trace, the options and syncscan's version are unchanged.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec

from syncscan import files
from syncscan.errors import SyncscanError, TraceUnreadable, UsageError
from syncscan.fleet import remote
from syncscan.load import open_bytes
from syncscan.load.redaction import redacted
from syncscan.load.unpack import reason
from syncscan.model.rank import RankAnalysis, decoded, encoded
from syncscan.version import __version__

_NAME = re.compile(r".+\.rank\.json(\.gz)?", re.IGNORECASE)
_PACKINGS = re.compile(r"(\.syncscan|\.pt\.trace|\.json|\.gz|\.zst|\.xz|\.bz2|\.tmp)+\Z", re.IGNORECASE)
_LONGEST = 100
"""Characters of a trace's name at the start of its file's name, which may have 255 bytes."""
_AT_ONCE = 256
"""Files that are read from a storage together."""


class _RankInputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Inputs that a rank was computed from; an unknown trace state is empty, and makes the file invalid later."""

    syncscan: str
    path: str
    state: str
    options: str


class _StoredRank(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    schema: Literal["syncscan.rank/1"] = "syncscan.rank/1"
    made: _RankInputs
    rank: msgspec.Raw


def named_as_rank(name: str) -> bool:
    """Return whether a file name is that of a stored rank: `NAME.rank.json`, compressed or not."""
    return _NAME.fullmatch(name) is not None


def read_stored(path: str) -> RankAnalysis:
    """Return the rank in a stored file; TraceUnreadable where it is damaged, or of another version of syncscan."""
    with open_bytes(path) as stream:
        text = stream.read()
        if stream.lost:
            raise TraceUnreadable(f"{redacted(path)} can't be read: {stream.lost}", "Analyze its trace again.")
    try:
        return decoded(bytes(msgspec.json.decode(text, type=_StoredRank).rank))
    except (msgspec.MsgspecError, ValueError, RecursionError) as e:
        why = f"{redacted(path)} contains no rank that this version of syncscan can read: {reason(e)}."
        raise TraceUnreadable(why, "Analyze its trace again.") from None


class Store:
    """A folder, made if it isn't there, or a prefix of a storage, with a file for each rank of these traces."""

    def __init__(self, location: str | os.PathLike[str], traces: Iterable[str], options: Mapping[str, Any]) -> None:
        self.where = os.fspath(location)
        self.options = repr(sorted((key, value) for key, value in options.items() if key != "max_memory"))
        self.names = _names(traces)
        self.made: dict[str, _RankInputs] = {}
        try:
            if remote.is_remote(self.where):
                self._storage.makedirs(self._root, exist_ok=True)
            else:
                Path(self.where).mkdir(parents=True, exist_ok=True)
        except Exception as e:  # a storage's own client raises whatever it likes
            raise self._failed(e) from None

    def taken(self) -> dict[str, RankAnalysis]:
        """Return the stored ranks that are still valid, by their trace."""
        texts = self._read_remote() if remote.is_remote(self.where) else self._read_local()
        ranks = {trace: self._holding(trace, texts[name]) for trace, name in self.names.items() if name in texts}
        return {trace: rank for trace, rank in ranks.items() if rank is not None}

    def expect(self, trace: str) -> None:
        """Note a trace's state before it is analyzed: later changes to the file aren't in the rank."""
        self.made[trace] = _inputs_of(trace, self.options)

    def put(self, trace: str, rank: RankAnalysis) -> None:
        """Write a rank's file, atomically."""
        inputs = self.made.get(trace) or _RankInputs(
            syncscan=__version__, path=redacted(trace), state="", options=self.options
        )
        text = msgspec.json.encode(_StoredRank(made=inputs, rank=msgspec.Raw(encoded(rank))))
        name = self.names[trace]
        if not remote.is_remote(self.where):
            files.write(Path(self.where) / name, [text], force=True)
            return
        try:
            self._storage.pipe_file(f"{self._root}/{name}", _pack(text))
        except Exception as e:
            raise self._failed(e) from None

    @cached_property
    def _opened(self) -> tuple[Any, remote.Address]:
        return remote.opened(self.where)

    @property
    def _storage(self) -> Any:
        return self._opened[0]

    @property
    def _root(self) -> str:
        return self._opened[1].path.rstrip("/")

    def _read_local(self) -> dict[str, bytes]:
        names = {entry.name for entry in os.scandir(self.where)}
        return {
            name: text
            for name in self.names.values()
            if name in names and (text := _text_of(str(Path(self.where) / name))) is not None
        }

    def _read_remote(self) -> dict[str, bytes]:
        try:
            self._storage.invalidate_cache()
            there = {PurePosixPath(path).name for path in self._storage.find(self._root, maxdepth=1)}
            wanted = [f"{self._root}/{name}" for name in self.names.values() if name in there]
            texts: dict[str, bytes] = {}
            for k in range(0, len(wanted), _AT_ONCE):
                texts |= self._storage.cat(wanted[k : k + _AT_ONCE], on_error="omit")
        except Exception as e:
            raise self._failed(e) from None
        unpacked = {PurePosixPath(path).name: _unpack(text) for path, text in texts.items()}
        return {name: text for name, text in unpacked.items() if text is not None}

    def _holding(self, trace: str, text: bytes) -> RankAnalysis | None:
        """Return the rank in this trace's file; None where it is outdated or damaged."""
        try:
            stored = msgspec.json.decode(text, type=_StoredRank)
            inputs = self.made[trace] = _inputs_of(trace, self.options)
            return decoded(bytes(stored.rank)) if inputs.state and stored.made == inputs else None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def _failed(self, error: Exception) -> SyncscanError:
        if isinstance(error, SyncscanError):
            return error
        return UsageError(f"{redacted(self.where)} can't store the ranks: {reason(error)}.", "Choose another folder.")


def _inputs_of(trace: str, options: str) -> _RankInputs:
    return _RankInputs(syncscan=__version__, path=redacted(_whole(trace)), state=_state(trace), options=options)


def _state(trace: str) -> str:
    """Return a text that changes with a trace; empty where unknown."""
    if remote.is_remote(trace):
        return remote.state_of(trace)
    try:
        status = os.stat(trace)  # noqa: PTH116
    except (OSError, ValueError):
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


def _whole(trace: str) -> str:
    """Return a path that is independent of the working directory."""
    return trace if remote.is_remote(trace) else os.path.abspath(trace)  # noqa: PTH100


def _names(traces: Iterable[str]) -> dict[str, str]:
    """Return a file name for each trace, from its name and a hash of its path, as folders often share names."""
    names: dict[str, str] = {}
    used: dict[str, int] = {}
    for trace in traces:
        path = redacted(_whole(trace))
        stem = re.sub(r"[^\w.+=-]", "_", _PACKINGS.sub("", PurePosixPath(path).name))[:_LONGEST] or "trace"
        name = f"{stem}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:10]}"
        used[name] = used.get(name, 0) + 1  # two addresses that differ in what is hidden
        again = f"-{used[name]}" if used[name] > 1 else ""
        names[trace] = f"{name}{again}.rank.json.gz"
    return names


def _text_of(path: str) -> bytes | None:
    try:
        with open_bytes(path) as stream:
            text = stream.read()
            return None if stream.lost else text
    except SyncscanError:
        return None


def _pack(text: bytes) -> bytes:
    from isal import igzip

    return bytes(igzip.compress(text, 2))


def _unpack(text: bytes) -> bytes | None:
    from isal import igzip

    try:
        return bytes(igzip.decompress(text))
    except Exception:  # damaged: of several classes
        return None
