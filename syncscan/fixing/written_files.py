"""Compare the files that runs of a program write, knowing which differ between two unchanged runs."""

from __future__ import annotations

import filecmp
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from syncscan.fixing.file_values import SteadyValues, content, leaves, text_of
from syncscan.fixing.printed_lines import MOST, SteadyLines, several
from syncscan.fixing.source_text import shown_path

Written = Mapping[str, str | None]
"""By the path that a program used: the file that a run left there; None where it removed the user's."""
LARGEST = 1 << 29
"""Bytes of a file whose values are compared; a larger one has to have the same bytes."""
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
        assert self._first is not None
        first = again = content(Path(self._first))
        if self._again is not None and not self._is_first(self._again):
            again = content(Path(self._again))
        texts = [text_of(data, self._name) for data in (first, again)]
        if texts[0] is not None and texts[1] is not None:
            return SteadyLines(texts[0], texts[1])
        return SteadyValues(leaves(first, self._name), leaves(again, self._name))

    @property
    def noise(self) -> str:
        """The name, and the lines or values that differ between the two runs; empty where none do."""
        if (self._first is None) is not (self._again is None):
            return f"{self._name}, which one of them removes"
        if self._again is None or self._is_first(self._again):
            return ""
        if self._is_large(self._again):
            return self._name
        noise = self._steady.noise
        part = "line" if isinstance(self._steady, SteadyLines) else "value"
        return f"{self._name} ({several(len(noise), part)}, such as {noise[0][:MOST]!r})" if noise else ""

    def has_results(self, constants: Container[float]) -> bool:
        """Return whether the file holds a number that is the same in both runs, or is one of bytes that are."""
        if self._first is None or self._again is None:
            return False
        return self._is_first(self._again) if self._is_large(self._again) else self._steady.has_results(constants)

    def differs(self, left: str | None) -> str:
        """Return how another run's file differs, without the subject; empty where it doesn't."""
        if (self._first is None) is not (self._again is None) or (self._first is None and left is None):
            return ""
        if self._first is None:
            return f"doesn't remove {self._name}"
        if left is None:
            return f"removes {self._name}"
        if self._is_first(left):
            return ""
        if self._is_large(left):
            steady = self._again is not None and self._is_first(self._again)
            return f"writes other bytes to {self._name}" if steady else ""
        data = content(Path(left))
        if isinstance(self._steady, SteadyValues):
            why = self._steady.differs(leaves(data, self._name), "writes")
        else:
            text = text_of(data, self._name)
            why = "writes other bytes" if text is None else self._steady.differs(text, "writes")
        return f"{why} in {self._name}" if why else ""

    def _is_first(self, other: str) -> bool:
        """Return whether another file has the bytes of the first run's."""
        assert self._first is not None
        if not (Path(self._first).is_file() and Path(other).is_file()):
            return content(Path(self._first)) == content(Path(other))
        return filecmp.cmp(self._first, other, shallow=False)

    def _is_large(self, other: str) -> bool:
        sizes = (Path(file).lstat().st_size for file in (self._first, other) if file is not None)
        return max(sizes) > LARGEST


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
