"""Open the storage that a URL names, and describe its errors."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from syncscan.errors import MissingExtra, SyncscanError, TraceNotFound, TraceUnreadable, installing
from syncscan.load.redaction import redacted
from syncscan.load.unpack import reason

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")


class Address(msgspec.Struct, frozen=True):
    """A URL in parts: the storage's path, and the text before and after it."""

    before: str
    path: str
    behind: str

    def of(self, path: str) -> str:
        """Return the URL of another path of the same storage."""
        return f"{self.before}{path}{self.behind}"


def is_remote(place: str) -> bool:
    """Return whether a place is a URL that fsspec opens."""
    return _REMOTE.match(place) is not None


def opened(url: str) -> tuple[Any, Address]:
    """Open the storage that a URL names with fsspec; return it and the address in it.

    Its credentials come from where its own client looks for them, the environment first.
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
    before, separator, behind = url.rpartition(str(path))
    if not separator:  # of a local file's URL the storage knows the whole path
        before, behind = str(storage.unstrip_protocol(path)).removesuffix(str(path)), ""
    return storage, Address(before, str(path), behind.lstrip("/"))


def failed(url: str, error: Exception) -> SyncscanError:
    """Return the error to raise for an error of a storage's client."""
    if isinstance(error, SyncscanError):
        return error
    if isinstance(error, FileNotFoundError):
        return TraceNotFound(f"{redacted(url)} doesn't exist.", "Check the address.")
    return TraceUnreadable(f"{redacted(url)} can't be read: {reason(error)}.", "Check the address and your access.")
