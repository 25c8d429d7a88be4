"""Names in the format: the categories that are read, and the numbers of an event's args that become columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

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
