"""Compare the lines that runs of a program print or write, knowing which differ between two unchanged runs.

Fractions are compared up to rounding, all else exactly.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from pathlib import Path

TOLERANCE = 1e-5
"""Relative; what is printed with fewer digits may differ in the last of them by one."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)\b")
MOST = 60
"""Characters of a quotation."""
BEFORE = 20
"""Equal characters that a quotation keeps in front of the first that differs."""


def words(line: str) -> list[str]:
    """Return what stands between the numbers of a line."""
    return _NUMBER.split(line)


def numbers(line: str) -> list[str]:
    return _NUMBER.findall(line)


def same_line(a: str, b: str) -> bool:
    """Return whether two lines are equal, up to rounding of their fractions."""
    if a == b:
        return True
    return words(a) == words(b) and all(map(same_number, numbers(a), numbers(b)))


def same_number(x: str, y: str) -> bool:
    """Return whether two numbers are equal; fractions also where they differ by rounding or in their last digit."""
    if x == y:
        return True
    if not (is_fraction(x) and is_fraction(y)):
        return False
    p, q, digits = float(x), float(y), len(x.partition(".")[2])
    exponent = "e" in (x + y).lower()
    last = not exponent and digits == len(y.partition(".")[2]) and abs(p - q) <= 1.01 * 10.0**-digits
    return last or abs(p - q) <= TOLERANCE * max(abs(p), abs(q))


def is_fraction(number: str) -> bool:
    """Return whether a number isn't an integer, which a program that rounds differently prints alike."""
    return "." in number or "e" in number.lower()


def instead(new: str, old: str) -> str:
    """Return `'loss 2' instead of 'loss 1'`; long texts are cut around the first character that differs."""
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(new, old, strict=False)))
    begin = 0 if max(len(new), len(old)) <= MOST or equal < MOST - BEFORE else equal - BEFORE
    return f"{_cut(new, begin)} instead of {_cut(old, begin)}"


def _cut(text: str, begin: int) -> str:
    part = text[begin : begin + MOST]
    return f"{'…' if begin else ''}{part!r}{'…' if len(text) > begin + MOST else ''}"


def several(count: int, name: str) -> str:
    """Return `1 line` or `2 lines`."""
    return f"{count} {name}" + "s" * (count != 1)


_BAR = re.compile(
    r"(?P<at>\d+(?:\.\d+)?[kMG]?(?:/\d+(?:\.\d+)?[kMG]?)?)\w* \[(?:\d+:)?\d\d:\d\d(?:<(?:(?:\d+:)?\d\d:\d\d|\?))?"
    r"(?:, +(?:[\d.]+[kMG]?|\?)[^\s,/\]]*/[^\s,\]]+)?"
)
"""Position and times of tqdm's bars: ` 3/20 [00:02<00:47,  2.48s/it, loss=0.5]`."""
MOST_COMPARISONS = 4_000_000
"""Pairs of lines up to which two texts of different lines are aligned in full; else only what begins and ends them."""


class SteadyLines:
    """The lines of two unchanged runs, and which of their numbers are the same in both.

    Lines are aligned by their words. Where the two runs print other lines, those that both print still have to be in
    every other run, in this order; progress bars are compared apart.
    """

    def __init__(self, text: str, again: str) -> None:
        self._bars, bars = _bars(text), _bars(again)
        self._lines, other = _lines(text), _lines(again)
        pairs = dict(_aligned(self._lines, other))
        self._steady = {i: _steady(self._lines[i], other[j]) for i, j in pairs.items()}
        self._all_match = len(pairs) == len(self._lines) == len(other)
        counts = Counter(map(_words, self._lines)), Counter(map(_words, other))
        self._known = counts[0] | counts[1]
        self._varying = {line for line, count in self._known.items() if counts[0][line] != counts[1][line]}
        """Words of lines that the two runs print in another number."""
        self._strange = max(len(self._lines), len(other)) - len(pairs)
        """Lines of a run that the other doesn't have."""
        lost = set(range(len(other))) - set(pairs.values())
        unsteady = [k for k, line in enumerate(self._lines) if len(self._steady.get(k, ())) < len(numbers(line))]
        single = [k for k in range(len(self._lines)) if k not in pairs]
        self.noise = [self._lines[k] for k in sorted({*unsteady, *single})] or [other[k] for k in sorted(lost)]
        """Lines that differ between the two runs, in whole or in a number."""
        self._steady_bars = {at for at in self._bars.keys() & bars.keys() if self._bars[at] == bars[at]}

    def has_results(self, constants: Container[float] = ()) -> bool:
        """Return whether a number is the same in both runs that is no constant and no counter, as in `epoch 1`."""
        columns: dict[tuple[tuple[str, ...], int], list[str]] = defaultdict(list)
        for k, steady in self._steady.items():
            found = numbers(self._lines[k])
            for position in steady:
                columns[_words(self._lines[k]), position].append(found[position])
        for at in self._steady_bars:
            columns[("bar",), 0] += [n for bar in self._bars[at] for n in numbers(_without_position(bar)) if "." in n]
        return any(
            (any(map(is_fraction, column)) or not _counts(column)) and any(float(n) not in constants for n in column)
            for column in columns.values()
        )

    def differs(self, text: str, does: str) -> str:
        """Return how another run's lines differ, as the end of a sentence begun with `does`; empty if they don't."""
        return self._bars_differ(text, does) or self._lines_differ(_lines(text), does)

    def _bars_differ(self, text: str, does: str) -> str:
        bars = _bars(text)
        for at in self._bars.keys() & bars.keys():
            strange = [b for b in bars[at] if not any(same_line(a, b) for a in self._bars[at])]
            if strange and len(bars[at]) == len(self._bars[at]):
                return f"{does} {instead(strange[0], self._bars[at][0])}"
        return ""

    def _lines_differ(self, lines: list[str], does: str) -> str:
        if self._all_match and len(lines) != len(self._lines):
            return f"{does} {several(len(lines), 'line')} instead of {len(self._lines)}"
        pairs = {k: k for k in range(len(lines))} if self._all_match else dict(_aligned(self._lines, lines))
        for k, steady in self._steady.items():
            line = self._lines[k]
            if k not in pairs and _words(line) in self._varying:
                continue
            if k not in pairs:
                return f"{does} no line {line[:MOST]!r}"
            if not _agree(line, lines[pairs[k]], steady):
                return f"{does} {instead(lines[pairs[k]], line)}"
        extra = [line for j, line in enumerate(lines) if j not in set(pairs.values()) and not self._known[_words(line)]]
        if len(extra) > self._strange:
            return f"{does} {extra[0][:MOST]!r}, as no unchanged run does"
        return ""


def _steady(a: str, b: str) -> frozenset[int]:
    """Return the positions of the numbers that two lines of the same words have in common."""
    return frozenset(k for k, (x, y) in enumerate(zip(numbers(a), numbers(b), strict=True)) if same_number(x, y))


def _agree(a: str, b: str, steady: frozenset[int]) -> bool:
    if a == b:
        return True
    if words(a) != words(b):
        return False
    pairs = list(zip(numbers(a), numbers(b), strict=True))
    return all(same_number(*pairs[k]) for k in steady)


def _counts(column: Sequence[str]) -> bool:
    """Return whether integers of one place are the same or evenly spaced, line by line."""
    if not column or not all(n.lstrip("+-").isdigit() for n in column):
        return not column
    return len(column) > 1 and len({int(b) - int(a) for a, b in pairwise(column)}) == 1


def _aligned(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of lines that two texts have in common, by their words."""
    left, right = list(map(_words, a)), list(map(_words, b))
    if len(left) * len(right) <= MOST_COMPARISONS or left == right:
        matcher = SequenceMatcher(None, left, right, autojunk=False) if left != right else None
        blocks = matcher.get_matching_blocks() if matcher else [(0, 0, len(left))]
        yield from ((i + k, j + k) for i, j, size in blocks for k in range(size))
        return
    begin = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    ends = zip(reversed(left[begin:]), reversed(right[begin:]), strict=False)
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    yield from ((k, k) for k in range(begin))
    yield from ((len(left) - k, len(right) - k) for k in range(end, 0, -1))


def _words(line: str) -> tuple[str, ...]:
    return tuple(words(line))


def _lines(text: str) -> list[str]:
    return [line for line in _parts(text) if not _BAR.search(line)]


def _bars(text: str) -> dict[str, list[str]]:
    """Return the states of progress bars by their position, `3/20`, without times, which differ from run to run."""
    states: dict[str, list[str]] = {}
    for line in _parts(text):
        if match := _BAR.search(line):
            states.setdefault(match["at"], []).append(_BAR.sub(r"\g<at> [", line).strip())
    return states


def _without_position(bar: str) -> str:
    return bar.rpartition("[")[2]


def _parts(text: str) -> Iterator[str]:
    return (part for line in text.splitlines() for part in line.split("\r"))


def shown_path(path: str) -> str:
    """Return a path relative to the working directory if it lies below."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def source_numbers(paths: Iterable[str], arguments: Iterable[str]) -> frozenset[float]:
    """Return the numbers in a program's readable files, in their strings too, and in its arguments."""
    texts = list(arguments)
    for path in paths:
        with contextlib.suppress(OSError):
            texts.append(Path(path).read_text(encoding="utf-8", errors="replace"))
    return frozenset(float(number) for text in texts for number in numbers(text))
