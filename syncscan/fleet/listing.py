"""List the traces of a job, given as a folder, a glob or a URL of a storage."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from syncscan.errors import MissingExtra, SyncscanError, TraceNotFound, TraceUnreadable, installing
from syncscan.load import (
    ByteStream,
    in_memory,
    named_as_saved,
    named_as_trace,
    natural,
    open_bytes,
    ranks_in,
    traces_among,
)
from syncscan.load import find as find_in_folder
from syncscan.load.folder import PEEK
from syncscan.load.unpack import reason, redacted

_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")


def is_remote(place: str) -> bool:
    """Return whether a place is a URL that fsspec opens."""
    return _REMOTE.match(place) is not None


def opened(url: str) -> tuple[Any, str, Callable[[str], str]]:
    """Open the storage that a URL names with fsspec; return it, the path in it, and what makes a path a URL again.

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
    after = behind.lstrip("/")
    return storage, str(path), lambda other: f"{before}{other}{after}"


def failed(url: str, error: Exception) -> SyncscanError:
    """Return the error to raise for an error of a storage's client."""
    if isinstance(error, SyncscanError):
        return error
    if isinstance(error, FileNotFoundError):
        return TraceNotFound(f"{redacted(url)} doesn't exist.", "Check the address.")
    return TraceUnreadable(f"{redacted(url)} can't be read: {reason(error)}.", "Check the address and your access.")


_MAGIC = re.compile(r"[*?\[]")
_AT_ONCE = 64
"""Heads of remote files that are read together, `PEEK` bytes each."""
_HINT = "Give a folder, a glob such as 'runs/*.json.gz', or a URL such as s3://bucket/prefix."


def find(location: str | os.PathLike[str]) -> list[str]:
    """Return the traces of a job, by rank and then by name.

    The location is a folder, a glob, a file, or any of these as a URL that fsspec opens. In a folder, these are the
    files that begin like a trace; without any, those in its subfolders; otherwise its saved analyses. A glob follows
    the same rules: other JSON files that match it are ignored.
    """
    place = os.fspath(location)
    if is_remote(place):
        return _find_at(place)
    if os.path.lexists(place) or not _MAGIC.search(place):
        return [rank for path in find_in_folder(place) for rank in ranks_in(path)]
    files = [name for name in glob.glob(place, recursive=True) if os.path.isfile(name)]  # noqa: PTH113, PTH207
    return _one_kind(files, ((name, partial(open_bytes, name)) for name in files)) or _nothing(place)


def _find_at(url: str) -> list[str]:
    """Return the traces at a URL: listed once, with the first bytes of candidates read together."""
    storage, path, url_of = opened(url)
    try:
        storage.invalidate_cache()
        if _MAGIC.search(path):
            return _traces_of(storage, url_of, storage.glob(path)) or _nothing(url)
        if not storage.isdir(path):
            return [url]
        inside = storage.find(path)
    except Exception as e:  # a storage's own client raises whatever it likes
        raise failed(url, e) from None
    direct = [name for name in inside if str(PurePosixPath(name).parent) == str(PurePosixPath(path))]
    return _traces_of(storage, url_of, direct) or _traces_of(storage, url_of, inside) or _nothing(url)


def _traces_of(storage: Any, url_of: Callable[[str], str], names: Iterable[str]) -> list[str]:
    files = [name for name in names if named_as_trace(PurePosixPath(name).name)]
    return [url_of(name) for name in _one_kind(files, _begins(storage, files))]


def _begins(storage: Any, files: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield each file with a function that opens its begin."""
    names = iter(name for name in files if not named_as_saved(name))
    while some := list(islice(names, _AT_ONCE)):
        texts = storage.cat_ranges(some, [0] * len(some), [PEEK] * len(some), on_error="return")
        yield from ((name, partial(_begin, text, name)) for name, text in zip(some, texts, strict=True))


def _begin(text: bytes | Exception, name: str) -> ByteStream:
    if isinstance(text, Exception):
        raise TraceUnreadable(f"{redacted(name)} can't be read.")
    return in_memory(text, name)


def _one_kind(files: list[str], opening: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the traces among files; without any the saved analyses."""
    if traces := traces_among(opening):
        return traces
    saved = [name for name in files if named_as_saved(PurePosixPath(name).name)]
    return sorted(saved, key=natural)


def _nothing(where: str) -> list[str]:
    raise TraceNotFound(f"{redacted(where)} contains no traces.", _HINT)
