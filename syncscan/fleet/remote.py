"""From a URL to the storage that it lies in, to what failed there, and to what tells whether a file has changed."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from syncscan.errors import MissingExtra, SyncscanError, TraceNotFound, TraceUnreadable, installing
from syncscan.load.redaction import redacted
from syncscan.load.stored import reason

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")
_TOLD_BY = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "updated", "created")
"""What storages call that which changes when a file does, the surest first (s3fs, gcsfs, adlfs, sftp, memory)."""


class Address(msgspec.Struct, frozen=True):
    """A URL in parts: what stands before and behind the path that the storage itself knows."""

    before: str
    path: str
    behind: str

    def of(self, path: str) -> str:
        """The URL of another path of the same storage."""
        return f"{self.before}{path}{self.behind}"


def is_remote(place: str) -> bool:
    """Whether it is a URL that fsspec opens."""
    return _REMOTE.match(place) is not None


def opened(url: str) -> tuple[Any, Address]:
    """The storage that a URL names, as fsspec has it, and where in it.

    Its credentials come from where its own client looks for them, the environment first.

    Raises:
        MissingExtra: fsspec or the package for this kind of storage isn't installed.
        TraceUnreadable: there is no such kind, or the client refuses the address.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtra(f"{redacted(url)} needs fsspec.", installing("remote")) from None
    try:
        storage, path = url_to_fs(url)
    except ImportError as e:
        raise MissingExtra(f"{redacted(url)}: {reason(e)}.", "Install the package that fsspec asks for.") from None
    except Exception as e:  # a storage's own client raises whatever it likes
        raise failed(url, e) from None
    before, found, behind = url.rpartition(str(path))
    if not found:  # of a local file's URL the storage knows the whole path
        before, behind = str(storage.unstrip_protocol(path)).removesuffix(str(path)), ""
    return storage, Address(before, str(path), behind.lstrip("/"))


def failed(url: str, error: Exception) -> SyncscanError:
    """What to raise for what a storage's client raised."""
    if isinstance(error, SyncscanError):
        return error
    if isinstance(error, FileNotFoundError):
        return TraceNotFound(f"{redacted(url)}: there is no such place.", "Check the address.")
    return TraceUnreadable(f"{redacted(url)} can't be read: {reason(error)}.", "Check the address and your access.")


def state_of(url: str) -> str:
    """What changes when the file does: its size and etag, or when it was written; empty where that isn't told."""
    try:
        storage, address = opened(url)
        told = storage.info(address.path)
    except Exception:  # who reads it says why it can't be
        return ""
    token = next((told[key] for key in _TOLD_BY if told.get(key)), None)
    return "" if token is None else f"{told.get('size')} {token}"
