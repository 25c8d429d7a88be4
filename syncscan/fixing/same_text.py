"""Compare text by its words and numbers: fractions up to rounding, all else exactly; and quote what differs."""

from __future__ import annotations

import re
from itertools import takewhile

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
