"""The number that two commands are compared by: what a regular expression or a path finds in what they print."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from syncscan.errors import UsageError

_COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_RANK = re.compile(r"\[(?:rank|default|worker)\s?(\d+)\]")
"""How torchrun and torch's logging mark a rank's line."""
_STEP = re.compile(r"\.([^.\[\]]+)|\[(-?\d+)\]")


class Metric:
    """Finds a command's number in its lines.

    Args:
        text: a regular expression whose group `value`, or else the first, is the number (a group `rank` tells whose it
            is), or a path such as `$.results[0].tokens_per_s` into lines, or a whole output, of JSON.

    Raises:
        UsageError: it is neither.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._path = _path(text) if text.startswith("$") else None
        try:
            self._expression = re.compile(text)
        except re.error as error:
            raise UsageError(f"'{text}' is no regular expression: {error}.") from None
        if self._path is None and not self._expression.groups:
            raise UsageError(f"'{text}' has no group for the number.", r"Write one, as in --metric 'loss: ([\d.]+)'.")

    def in_line(self, line: str) -> tuple[str, float] | None:
        """Return the rank (empty if none is named) and the number of a line; None if it has none."""
        if self._path is not None:
            value = _at(_parsed(line), self._path) if line.lstrip().startswith(("{", "[")) else None
            return None if value is None else (self._rank(line), value)
        match = self._expression.search(_COLORS.sub("", line))
        value = None if match is None else _number(match[self._group])
        if match is None or value is None:
            return None
        return match.groupdict().get("rank") or self._rank(line), value

    def in_document(self, text: str) -> float | None:
        """Return the number of an output that is one document of JSON."""
        return None if self._path is None else _at(_parsed(text), self._path)

    def without(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield what lines say besides: those of JSON that have the number not at all, of others the rest."""
        for line in lines:
            if self._path is None:
                yield self._expression.sub("…", _COLORS.sub("", line))
            elif self.in_line(line) is None:
                yield line

    @property
    def _group(self) -> str | int:
        return "value" if "value" in self._expression.groupindex else 1

    def _rank(self, line: str) -> str:
        match = _RANK.search(line)
        return match[1] if match else ""


def _path(text: str) -> list[str | int]:
    if _STEP.sub("", text) != "$" or text == "$":
        raise UsageError(f"'{text}' is no path into JSON.", "Write one as $.results[0].tokens_per_s.")
    return [match[1] or int(match[2]) for match in _STEP.finditer(text)]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _at(value: Any, path: Iterable[str | int]) -> float | None:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return _number(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value.replace(",", "") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return None
