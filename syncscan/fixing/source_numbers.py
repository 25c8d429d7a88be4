"""The numbers that a program holds as it is written: what prints only these has computed nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from syncscan.fixing.same_text import numbers


def source_numbers(paths: Iterable[str], arguments: Iterable[str]) -> frozenset[float]:
    """Return the numbers in a program's files, in their strings too, and in its arguments.

    Args:
        paths: its files; those that can't be read are left out.
        arguments: its arguments.
    """
    texts = list(arguments)
    for path in paths:
        with contextlib.suppress(OSError):
            texts.append(Path(path).read_text(encoding="utf-8", errors="replace"))
    return frozenset(float(number) for text in texts for number in numbers(text))
