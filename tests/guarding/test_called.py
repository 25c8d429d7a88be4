"""A waiting line's call is named by the instruction that runs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from syncscan.guarding.called import called


class Reads:
    """Reports where it is used, as a tensor's read-back does."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def _read(self, result: Any, depth: int = 2) -> Any:
        frame = sys._getframe(depth)
        self.seen.append(called(frame.f_code, frame.f_lasti))
        return result

    item = nonzero = lambda self: self._read(self)
    __getitem__ = lambda self, index: self._read(self)  # noqa: E731
    __setitem__ = lambda self, index, value: self._read(None)  # noqa: E731
    __contains__ = lambda self, value: self._read(True)  # noqa: E731
    __bool__ = lambda self: self._read(True)  # noqa: E731
    __float__ = lambda self: self._read(1.0)  # noqa: E731
    __format__ = lambda self, spec: self._read("")  # noqa: E731


def many(t: Any) -> None:
    t.nonzero().item()
    float(t)
    t[0]
    t[1] = 2
    if t:
        pass
    2 in t  # noqa: B015
    f"{t}"
    max(
        0,
        float(t),
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 keeps lines alone")
def test_each_instruction_has_its_name() -> None:
    """With several calls in a line, it names the one that waits."""
    reads = Reads()
    many(reads)
    assert reads.seen == ["nonzero", "item", "float", "[]", "[]=", "if", "in", "format", "float"]


def one(t: Any) -> Any:
    value = t.item()
    return value


def test_a_line_with_one_call_has_its_name_everywhere() -> None:
    """Python 3.10 too."""
    reads = Reads()
    one(reads)
    assert reads.seen == ["item"]


def test_generated_code_has_none() -> None:
    """Its source is nowhere to be read."""
    reads = Reads()
    exec("reads.item()", {"reads": reads})
    assert reads.seen == [""]
