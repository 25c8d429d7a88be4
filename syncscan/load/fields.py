"""Names and values in the format: the categories and numbers that are read, and how values become columns.

Conversion never raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int64
from syncscan.model.json_text import whole_characters
from syncscan.model.process_group import group_text
from syncscan.model.trace import CALLS, DEVICE, NONE, Category

CATEGORIES = {
    "cpu_op": Category.CPU_OP,
    "Operator": Category.CPU_OP,
    "user_annotation": Category.ANNOTATION,
    "cuda_runtime": Category.RUNTIME,
    "Runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "mtia_runtime": Category.RUNTIME,
    "glow_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
    "cuda_driver": Category.DRIVER,
    "xpu_driver": Category.DRIVER,
    "privateuse1_driver": Category.DRIVER,
    "kernel": Category.KERNEL,
    "Kernel": Category.KERNEL,
    "mtia_ccp_events": Category.KERNEL,
    "gpu_memcpy": Category.MEMCPY,
    "Memcpy": Category.MEMCPY,
    "gpu_memset": Category.MEMSET,
    "Memset": Category.MEMSET,
    "cuda_sync": Category.SYNC,
    "xpu_sync": Category.SYNC,
    "overhead": Category.OVERHEAD,
    "os_runtime": Category.OS_CALL,
}
"""Trace category → ours; from the version table of the format (Kineto's ActivityType.h through its history)."""

# "User" of torch 1.8, today's gpu_user_annotation, is left out too: it repeats a host annotation on each stream.

PYTHON = "python_function"

ARROWS = frozenset({"fwdbwd", "forward_backward"})
"""Categories of the arrows from a forward op to its backward op."""


def vendor_of_category(name: str) -> str:
    """Return the vendor that alone uses a category (`xpu`, `mtia`, `cuda`); empty for shared categories."""
    prefix = name.partition("_")[0]
    return prefix if prefix in ("xpu", "mtia") else "cuda" if name == "cuda_sync" else ""


class Field(NamedTuple):
    column: str
    """Column's name in `Slices`, and the attribute's name in decoded args."""
    type: Any
    """The column's dtype; numbers that don't fit are dropped."""
    categories: tuple[Category, ...]
    """Categories of slices that have it; NONE for all others."""
    key: str
    """kineto's key in `args`."""
    rare: bool = False
    """Whether most traces don't have this field, and so no such column."""


_OPS = (Category.CPU_OP, Category.ANNOTATION)
_WORK = (*DEVICE, Category.SYNC)
_SIZED = (*CALLS, Category.MEMCPY, Category.MEMSET)

FIELDS = (
    Field("correlation", np.int64, (*CALLS, *_WORK), "correlation"),
    Field("external", np.int64, (*_OPS, *CALLS, *_WORK), "External id"),
    Field("sequence", np.int64, _OPS, "Sequence number"),
    Field("fwd_thread", np.int32, _OPS, "Fwd thread id"),
    Field("device", np.int32, _WORK, "device"),
    Field("stream", np.int32, _WORK, "stream"),
    Field("bytes", np.int64, _SIZED, "bytes"),
    Field("copy_kind", np.int8, CALLS, "kind", rare=True),  # only HIP calls state it
    Field("awaits", np.int64, (Category.SYNC,), "wait_on_cuda_event_record_corr_id"),
)


def fields_of(category: Category) -> tuple[Field, ...]:
    return tuple(field for field in FIELDS if category in field.categories)


def args_type(name: str, fields: Iterable[Field]) -> Any:
    """Return a msgspec type that decodes only these fields of `args`."""
    members = [(field.column, int, msgspec.field(default=NONE, name=field.key)) for field in fields]
    return msgspec.defstruct(name, members, gc=False, frozen=True)


def getter(attribute: str) -> Callable[[list[Any]], list[int]]:
    """Return a function that takes this attribute from each of many args.

    Compiled from text, since `getattr` and `attrgetter` take twice as long as a spelled-out attribute; one list per
    attribute, since an array of tuples takes three times as long (benchmarks/README.md, columns).
    """
    assert attribute.isidentifier()
    take: Callable[[list[Any]], list[int]] = eval(f"lambda every: [args.{attribute} for args in every]")
    return take


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
