"""Convert values of traces for columns: ids, numbers, text, nanoseconds; never raises."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from syncscan.model.arrays import Bool, Int64
from syncscan.model.json_text import whole_characters
from syncscan.model.process_group import group_text
from syncscan.model.trace import NONE

Float64 = np.ndarray[Any, np.dtype[np.float64]]

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
# No id needs more digits, and Python refuses to parse very long integers.
_LONGEST_NUMBER = 40
_INT64 = 2**63
LONGEST_US = 2.0**62 / 1000
"""Larger times in µs (146 years) are invalid; two smaller ones still add up within an int64 of ns."""

# libkineto/src/cupti_strings.cpp.
COPY_KINDS = {"HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "PtoP", "HtoH"}


def id_of(value: Any) -> int:
    """Return an id as an int64: an integer, a whole number or either as text; NONE for anything else."""
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value) or len(value) > _LONGEST_NUMBER:
            return NONE
        value = float(value) if set(value) & set(".eE") else int(value)
    if isinstance(value, float):
        value = int(value) if value.is_integer() else NONE
    if not isinstance(value, int) or isinstance(value, bool):
        return NONE
    return value if -_INT64 <= value < _INT64 else NONE


def number_of(value: Any) -> float:
    """Return a number, possibly given as text; nan for anything else."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def text_of(value: Any) -> str:
    """Return text that can be encoded: empty for null, lone surrogates replaced, other values as Python prints them."""
    if value is None:
        return ""
    return whole_characters(value if isinstance(value, str) else str(value))


def nanoseconds(microseconds: Float64) -> tuple[Int64, Bool]:
    """Return times in ns, and which of them are valid (others are 0).

    Whole and fractional part are split first, so that integer epoch times (torch 2.3 and older) stay exact to the ns.
    """
    usable = np.abs(microseconds) <= LONGEST_US
    if not usable.all():
        microseconds = np.where(usable, microseconds, 0.0)
    whole = np.floor(microseconds)
    part = np.rint((microseconds - whole) * 1000)
    return whole.astype(np.int64) * 1000 + part.astype(np.int64), usable


def copy_name(name: str, direction: Any, source: Any, target: Any) -> str:
    """Return a copy's name as Kineto writes it; the CUPTI monitor writes `Memcpy`, with details in args."""
    if name != "Memcpy" or not isinstance(direction, str) or direction not in COPY_KINDS:
        return name
    kinds = [text_of(k).replace("_", " ").title() or "Unknown" for k in (source, target)]
    return f"Memcpy {direction} ({kinds[0]} -> {kinds[1]})"


def blocks_of(grid: Any) -> int:
    """Return how many blocks a kernel has, from its `grid`, a list of three numbers; NONE without one."""
    if not isinstance(grid, list) or not grid or not all(type(size) is int and size > 0 for size in grid):
        return NONE
    return math.prod(grid)


def process_group(name: Any, ranks: Any, source: int, target: int) -> str:
    """Return a collective's process group as one text, from its kernel's `args`; empty without one.

    `source` is the rank that a receive is from, `target` that to which a send goes, or NONE.
    """
    if name is None:
        return ""
    peer = next((rank for rank in (target, source) if 0 <= rank < 1 << 31), None)
    return group_text(text_of(name), text_of(ranks) if ranks is not None else "", peer)
