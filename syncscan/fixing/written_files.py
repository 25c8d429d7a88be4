"""Compare the files that runs of a program write, knowing which differ between two unchanged runs."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib
import io
import json
import mmap
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from syncscan.fixing.printed_lines import (
    MOST,
    TOLERANCE,
    SteadyLines,
    instead,
    same_line,
    same_number,
    several,
    shown_path,
)

Leaves = dict[str, Any]
"""Values that hold no others, by where they are: `["loss"][3]`."""
_ZIP, _GZIP, _NUMPY = b"PK\x03\x04", b"\x1f\x8b", b"\x93NUMPY"


def text_of(data: bytes, name: str) -> str | None:
    """Return a file's text; None for a file that holds no text, or one value: JSON is read as that."""
    if name.endswith((".json", ".ipynb")) and _json(data) is not None:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def leaves(data: bytes, name: str) -> Leaves:
    try:
        return dict(_flat(_value(data, name), ""))
    except (RuntimeError, TypeError):  # a value within itself, or a tensor that is no array, such as a lazy conjugate
        return {"": data}


def _value(data: bytes, name: str) -> Any:
    """Return what a file holds, by how it begins; its bytes where that isn't known."""
    if name.endswith((".json", ".ipynb")) and (document := _json(data)) is not None:
        return document[0]
    if data.startswith(_GZIP):
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return _member(gzip.decompress(data), name.removesuffix(".gz"))
    for reads in (_zip, _numpy):
        try:
            value = reads(data)
        except Exception:  # a damaged file, or one of another kind that begins alike
            continue
        if value is not None:
            return value
    return data


def _json(data: bytes) -> tuple[Any] | None:
    try:
        return (json.loads(data),)
    except (ValueError, RecursionError):
        return None


def _zip(data: bytes) -> Any:
    """Return the members of an archive; what torch saved, without running anything that it names."""
    if not data.startswith(_ZIP):
        return None
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(name.endswith("/data.pkl") for name in archive.namelist()):
            return importlib.import_module("torch").load(io.BytesIO(data), map_location="cpu", weights_only=True)
        return {name: _member(archive.read(name), name) for name in archive.namelist()}


def _member(data: bytes, name: str) -> Any:
    text = text_of(data, name)
    return _value(data, name) if text is None else text


def _numpy(data: bytes) -> Any:
    return np.load(io.BytesIO(data), allow_pickle=False) if data.startswith(_NUMPY) else None


def _flat(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the values in containers, with their place."""
    if isinstance(value, Mapping):
        parts = [(f"{place}[{key!r}]", inner) for key, inner in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        parts = [(f"{place}[{k}]", inner) for k, inner in enumerate(inside)]
    elif hasattr(value, "detach"):
        tensor = value.detach()
        yield place, (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()
        return
    else:
        yield place, value
        return
    for where, inner in parts:
        yield from _flat(inner, where)
    if not parts:
        yield place, f"empty {type(value).__name__}"


LARGEST = 1 << 29
"""Bytes of a file whose values are compared; a larger one has to have the same bytes."""


def content(path: Path) -> bytes:
    """Return what stands for a file: its bytes or, where it is large, their digest; of a link, where it leads."""
    if path.is_symlink():
        return b"-> " + str(path.readlink()).encode(errors="surrogateescape")
    if not path.is_file():
        return b""
    if path.stat().st_size <= LARGEST:
        return path.read_bytes()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return b"\0" + hashlib.sha256(data).digest()


OF_ALL = 10.0
"""An element of an array may also differ by this many tolerances of the array's root mean square: where a sum's parts
cancel, its rounding errors don't."""


class SteadyValues:
    """The values of two unchanged runs by place, and which of them are the same in both."""

    def __init__(self, values: Leaves, again: Leaves) -> None:
        self._values = values
        self._steady = {place for place in values.keys() & again.keys() if same_value(values[place], again[place])}
        self._known = values.keys() | again.keys()
        self.noise = [place for place in [*values, *(again.keys() - values.keys())] if place not in self._steady]
        """Places whose values differ between the two."""

    def has_results(self, constants: Container[float] = ()) -> bool:
        """Return whether a number that is no constant, an array, or a file's other bytes are the same in both."""
        return any(_is_result(self._values[place], constants) for place in self._steady)

    def differs(self, other: Leaves, does: str) -> str:
        """Return how another run's values differ, as the end of a sentence begun with `does`; empty if they don't."""
        for place in (place for place in self._values if place in self._steady):
            if place not in other:
                return f"{does} no value {place}"
            if not same_value(self._values[place], other[place]):
                return f"{does} {_difference(other[place], self._values[place])}" + (f" as {place}" if place else "")
        strange = [place for place in other if place not in self._known]
        if strange and not self.noise:
            return f"{does} a value {strange[0]}, as no unchanged run does"
        return ""


def same_value(a: Any, b: Any) -> bool:
    """Return whether two values are equal: of one type, and fractions up to rounding."""
    if isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and _same_array(np.asarray(a), np.asarray(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return same_number(repr(a), repr(b))
    if isinstance(a, str):
        left, right = a.splitlines(), b.splitlines()
        return len(left) == len(right) and all(map(same_line, left, right))
    return bool(a == b)


def _same_array(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    equal = (x == y) | (np.isnan(x) & np.isnan(y))
    finite = np.isfinite(x) & np.isfinite(y)
    if equal.all() or not (equal | finite).all():
        return bool(equal.all())
    size = np.sqrt(np.mean(np.abs(x[finite]) ** 2))
    allowed = TOLERANCE * np.maximum(np.abs(x), np.abs(y)) + OF_ALL * TOLERANCE * size
    return bool((equal | (np.abs(x - y) <= allowed)).all())


def _difference(new: Any, old: Any) -> str:
    arrays = [isinstance(value, np.ndarray) and value.size > 1 for value in (new, old)]
    if all(arrays):
        return "other numbers"
    if any(isinstance(value, bytes) for value in (new, old)):
        return "other bytes"
    return instead(f"{_kind(new, old)}{new}", f"{_kind(old, new)}{old}")


def _kind(value: Any, other: Any) -> str:
    """Return the type of a value where the other is of another type."""
    return "" if type(value) is type(other) else f"{type(value).__name__} "


def _is_result(value: Any, constants: Container[float]) -> bool:
    if isinstance(value, str):
        return "\n" in value and SteadyLines(value, value).has_results(constants)
    if isinstance(value, np.ndarray | bytes):
        return bool(len(value) if isinstance(value, bytes) else value.size)
    number = isinstance(value, int | float | complex | np.generic) and not isinstance(value, bool)
    return number and value not in constants


Written = Mapping[str, str | None]
"""By the path that a program used: the file that a run left there; None where it removed the user's."""
_COUNTERS = re.compile(r"[0-9a-f]{8,}|\d+")
"""Parts of names in which one file of two runs may differ: times, process ids, random words."""


class SteadyFiles:
    """The files of two unchanged runs, and what is the same in both."""

    def __init__(self, first: Written, again: Written) -> None:
        self._first = {path: left for path, left in first.items() if _counts(path, left)}
        second = {path: left for path, left in again.items() if _counts(path, left)}
        pairs = paired(self._first, second)
        self._files = {path: _SteadyFile(path, self._first[path], second[pair]) for path, pair in pairs.items()}
        self._alone = sorted([p for p in self._first if p not in pairs] + list(second.keys() - set(pairs.values())))

    @cached_property
    def noise(self) -> list[str]:
        """Files that differ between the two runs, with their lines or values that do."""
        within = [noise for file in self._files.values() if (noise := file.noise)]
        return within + [f"{shown_path(path)}, which one of them doesn't write" for path in self._alone]

    def has_results(self, constants: Container[float] = ()) -> bool:
        """Return whether a number in a file that is no constant, or a file of bytes, is the same in both runs."""
        return any(file.has_results(constants) for file in self._files.values())

    def differs(self, written: Written) -> str:
        """Return how the files of another run differ, as the end of a sentence; empty where they don't."""
        changed = {path: left for path, left in written.items() if _counts(path, left)}
        pairs = paired(self._first, changed)
        for path, file in self._files.items():
            if path not in pairs:
                return f"the patched program doesn't write {shown_path(path)}"
            if why := file.differs(changed[pairs[path]]):
                return f"the patched program {why}"
        strange = sorted(changed.keys() - set(pairs.values()))
        return f"the patched program writes {shown_path(strange[0])}" if strange and not self._alone else ""


class _SteadyFile:
    """One file of two unchanged runs; it is read when it is needed."""

    def __init__(self, path: str, first: str | None, again: str | None) -> None:
        self._name, self._first, self._again = shown_path(path), first, again

    @cached_property
    def _steady(self) -> SteadyLines | SteadyValues:
        data = [content(Path(file)) for file in (self._first, self._again) if file is not None]
        texts = [text for one in data if (text := text_of(one, self._name)) is not None]
        if len(texts) == len(data):
            return SteadyLines(texts[0], texts[-1])
        values = [leaves(one, self._name) for one in data]
        return SteadyValues(values[0], values[-1])

    @property
    def noise(self) -> str:
        """The name, and the lines or values that differ between the two runs; empty where none do."""
        if self._first is None or self._again is None:
            return f"{self._name}, which one of them removes" if self._first or self._again else ""
        if content(Path(self._first)) == content(Path(self._again)):
            return ""
        noise = self._steady.noise
        part = "line" if isinstance(self._steady, SteadyLines) else "value"
        return f"{self._name} ({several(len(noise), part)}, such as {noise[0][:MOST]!r})" if noise else ""

    def has_results(self, constants: Container[float]) -> bool:
        """Return whether the file holds a number that is the same in both runs, or is one of bytes that are."""
        return self._first is not None and self._again is not None and self._steady.has_results(constants)

    def differs(self, left: str | None) -> str:
        """Return how another run's file differs, without the subject; empty where it doesn't."""
        if (self._first is None) is not (self._again is None) or (self._first is None and left is None):
            return ""
        if self._first is None:
            return f"doesn't remove {self._name}"
        if left is None:
            return f"removes {self._name}"
        data = content(Path(left))
        if data == content(Path(self._first)):
            return ""
        if isinstance(self._steady, SteadyValues):
            why = self._steady.differs(leaves(data, self._name), "writes")
        else:
            text = text_of(data, self._name)
            why = "writes other bytes" if text is None else self._steady.differs(text, "writes")
        return f"{why} in {self._name}" if why else ""


def paired(first: Iterable[str], other: Iterable[str]) -> dict[str, str]:
    """Return the paths of one run's files with those of another's: by name, then by name but for numbers in it."""
    theirs = set(other)
    pairs = {path: path for path in first if path in theirs}
    waiting: dict[str, list[str]] = defaultdict(list)
    for path in sorted(theirs - pairs.keys()):
        waiting[_COUNTERS.sub("#", path)].append(path)
    for path in sorted(path for path in first if path not in pairs):
        alike = waiting[_COUNTERS.sub("#", path)]
        if alike:
            pairs[path] = alike.pop(0)
    return pairs


def _counts(path: str, left: str | None) -> bool:
    """Return whether a file is the program's result: no socket, no cache of Python's or of a library's in the home."""
    folder, home = Path.cwd(), Path("~").expanduser()
    if "__pycache__" in Path(path).parts or (left is not None and Path(left).is_socket()):
        return False
    if Path(path).is_relative_to(folder) or not Path(path).is_relative_to(home):
        return True
    return not Path(path).relative_to(home).parts[0].startswith(".")
