"""From a slice's name and the colour it has in Trace View to the name that Perfetto draws in a colour like it.

Perfetto takes no colours from a trace: it hashes a slice's name without digits, and the hash is hue and lightness. A
space that doesn't break (U+00A0) looks like any other and hashes to something else, so a name with some of them can be
found for most hues.

Source: Perfetto 52, `ui/src/components/colorizer.ts` (`getColorForSlice`) and `ui/src/base/hash.ts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product

_HUES = {"rail_animation": 12, "rail_idle": 42, "startup": 78, "rail_response": 255, "grey": 200}
"""Hue (HSLuv, degrees) by name of a colour in Trace View: red, orange, yellow, blue; for grey a pale blue-green."""
_NEAR = 10
"""Degrees within which a hue is taken for the one that is wanted: yellow and orange are 36 apart."""
_LIGHTNESS, _OF_YELLOW = range(46, 68), range(68, 80)
"""Percent: neither so dark that red is brown and yellow olive, nor so light that red is pink."""
_SPACES, _BETWEEN, _BEHIND = (" ", "\u00a0"), 5, 3
"""At most so many spaces are varied, and stand behind: 480 names, and one in about thirty has hue and lightness."""


@cache
def hued(name: str, color: str) -> str:
    """The name, with some of its spaces and a few behind it not breaking, that comes closest to a colour.

    Args:
        name: of a slice.
        color: what Trace View draws it in; one that isn't known, or none, leaves the name as it is.
    """
    if color not in _HUES:
        return name
    best = name
    for candidate in _lookalikes(name):
        if _off(candidate, color) < _off(best, color):
            best = candidate
        if not _off(best, color):
            break
    return best


def _lookalikes(name: str) -> Iterator[str]:
    """The name with other spaces, the fewest behind it first."""
    words = name.split(" ", _BETWEEN)
    for behind in range(_BEHIND + 1):
        for spaces in product(_SPACES, repeat=len(words) - 1 + behind):
            between, after = spaces[: len(words) - 1], spaces[len(words) - 1 :]
            yield "".join(part for pair in zip(words, (*between, ""), strict=True) for part in pair) + "".join(after)


def _off(name: str, color: str) -> int:
    """How far what a name is drawn in is from a colour, 0 where it is taken for it."""
    hue, lightness = color_of(name)
    away = abs((hue - _HUES[color] + 180) % 360 - 180)
    fits = lightness in (_OF_YELLOW if color == "startup" else _LIGHTNESS)
    return max(0, away - _NEAR) + (0 if fits else 20)


def color_of(name: str) -> tuple[int, int]:
    """Hue (degrees) and lightness (percent) in HSLuv that Perfetto gives slices of this name."""
    hashed = re.sub(r" ?[0-9]+", "", name)
    return _hash(hashed, 360), _hash(hashed + "x", 40) + 40


def _hash(text: str, size: int) -> int:
    """Perfetto's hash, an FNV-1a whose products are rounded as JavaScript's numbers are."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 18652613
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = _int32(int(float(16777619 * (value ^ (high << 8 | low)))))
    return abs(value) % size


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
