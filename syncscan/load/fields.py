"""The numbers of an event's `args` that become columns of `Slices`: a line each, from which all readers are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from syncscan.model.trace import CALLS, DEVICE, NONE, Category


class Field(NamedTuple):
    """One of them."""

    column: str
    """Its name in `Slices`, and as an attribute of a decoded event's args."""
    type: Any
    """The column's dtype; a number that doesn't fit is none."""
    categories: tuple[Category, ...]
    """The slices that have it; for all others it is NONE."""
    key: str
    """What kineto calls it in `args`."""
    older_key: str = ""
    """What older versions called it, which counts where there is no usable number under `key`."""
    rare: bool = False
    """Whether most traces have it nowhere, and then no column of it."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What it is called in `args`; the first with a usable number counts."""
        return (self.key, self.older_key) if self.older_key else (self.key,)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of decoded args that hold these keys."""
        return (self.column, f"{self.column}_older")[: len(self.keys)]


_OPS = (Category.CPU_OP, Category.ANNOTATION)
_WORK = (*DEVICE, Category.SYNC)
_SIZED = (*CALLS, Category.MEMCPY, Category.MEMSET)

FIELDS = (
    Field("correlation", np.int64, (*CALLS, *_WORK), "correlation"),
    Field("external", np.int64, (*_OPS, *CALLS, *_WORK), "External id", "external id"),  # torch 1.10 and older
    Field("sequence", np.int64, _OPS, "Sequence number"),
    Field("fwd_thread", np.int32, _OPS, "Fwd thread id"),
    Field("device", np.int32, _WORK, "device"),
    Field("stream", np.int32, _WORK, "stream"),
    Field("bytes", np.int64, _SIZED, "bytes"),
    Field("copy_kind", np.int8, CALLS, "kind", rare=True),  # only HIP's calls say it
    Field("awaits", np.int64, (Category.SYNC,), "wait_on_cuda_event_record_corr_id"),
)


def fields_of(category: Category) -> tuple[Field, ...]:
    """Return the fields that slices of this category have."""
    return tuple(field for field in FIELDS if category in field.categories)


def args_type(name: str, fields: Iterable[Field]) -> Any:
    """Return a msgspec type that decodes these fields of `args`, and nothing else."""
    each = [pair for field in fields for pair in zip(field.attributes, field.keys, strict=True)]
    members = [(attribute, int, msgspec.field(default=NONE, name=key)) for attribute, key in each]
    return msgspec.defstruct(name, members, gc=False, frozen=True)


def getter(attribute: str) -> Callable[[list[Any]], list[int]]:
    """Return a function that takes this attribute from each of many args.

    Compiled from text, as `getattr` and `attrgetter` take twice as long as an attribute that is spelt out; a list an
    attribute, as an array of tuples takes three times as long (benchmarks/README.md, columns).
    """
    assert attribute.isidentifier()
    made: Callable[[list[Any]], list[int]] = eval(f"lambda every: [args.{attribute} for args in every]")
    return made
