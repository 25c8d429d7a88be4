"""Choose a slice name that Perfetto draws in a color close to the one Trace View uses.

Perfetto ignores colors in a trace: it hashes a slice's name without digits to a hue and a lightness. A non-breaking
space (U+00A0) looks like a space but hashes differently, so most hues can be reached by replacing some spaces.

Source: Perfetto 52, `ui/src/components/colorizer.ts` (`getColorForSlice`) and `ui/src/base/hash.ts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product

_HUES = {"rail_animation": 12, "rail_idle": 42, "startup": 78, "rail_response": 255, "grey": 200}
"""Hue (HSLuv, degrees) of each Trace View color name: red, orange, yellow, blue; pale blue-green stands for grey."""
_NEAR = 10
"""Largest distance in degrees at which a hue counts as the wanted one; yellow and orange are 36 apart."""
_LIGHTNESS, _OF_YELLOW = range(46, 68), range(68, 80)
"""Allowed lightness, percent: dark red would look brown and dark yellow olive; light red would look pink."""
_SPACES, _BETWEEN, _BEHIND = (" ", "\u00a0"), 5, 3
"""Spaces to vary between words and to append: up to 480 names, of which about one in thirty has the hue and lightness.
"""


@cache
def hued(name: str, color: str) -> str:
    """Return the name, with some spaces made non-breaking and a few appended, whose color in Perfetto is closest.

    A `color` that Trace View doesn't have leaves the name as it is.
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
    """Yield variants of the name with other spaces, those with the fewest appended first."""
    words = name.split(" ", _BETWEEN)
    for behind in range(_BEHIND + 1):
        for spaces in product(_SPACES, repeat=len(words) - 1 + behind):
            between, after = spaces[: len(words) - 1], spaces[len(words) - 1 :]
            yield "".join(part for pair in zip(words, (*between, ""), strict=True) for part in pair) + "".join(after)


def _off(name: str, color: str) -> int:
    """Return the distance of a name's color from the wanted one; 0 where it is close enough."""
    hue, lightness = color_of(name)
    away = abs((hue - _HUES[color] + 180) % 360 - 180)
    fits = lightness in (_OF_YELLOW if color == "startup" else _LIGHTNESS)
    return max(0, away - _NEAR) + (0 if fits else 20)


def color_of(name: str) -> tuple[int, int]:
    """Return the hue (degrees) and lightness (percent) in HSLuv that Perfetto gives slices of this name."""
    hashed = re.sub(r" ?[0-9]+", "", name)
    return _hash(hashed, 360), _hash(hashed + "x", 40) + 40


def _hash(text: str, size: int) -> int:
    """Return Perfetto's hash: FNV-1a with products rounded as JavaScript's numbers are."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 18652613
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = _int32(int(float(16777619 * (value ^ (high << 8 | low)))))
    return abs(value) % size


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
