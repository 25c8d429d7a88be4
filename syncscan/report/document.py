"""What each document of `--format json` begins with, and the parts that several of them have.

A document is a Struct that stands beside the function which makes it: msgspec encodes it as it is, and the files in
`syncscan/schemas` are made of the same types (`pytest tests/report/test_schemas.py --update-golden`; tests/schemas.py
knows the version of each). Times are µs, means of a step unless a name says otherwise; what a trace can't tell is None.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from syncscan.model.diff import Promise

Range = Annotated[tuple[float, ...], msgspec.Meta(min_length=2, max_length=2)]
"""The lower and the upper end."""


def about(words: str) -> msgspec.Meta:
    """Return what the schema says of a key."""
    return msgspec.Meta(description=words)


class Document(msgspec.Struct, frozen=True):
    """What each begins with."""

    schema: str
    syncscan: Annotated[str, about("the version that wrote it")]


class PromiseDocument(msgspec.Struct, frozen=True):
    """What had been projected for the syncs that are gone."""

    saving_us: float
    range_us: Range
    kept: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["yes", "less", "more", "unknown"]})]


def promise_document(promise: Promise | None) -> PromiseDocument | None:
    """Return a promise as both diffs show it; None without one."""
    if promise is None:
        return None
    return PromiseDocument(saving_us=promise.saving_us, range_us=promise.range_us, kept=promise.kept.name.lower())


class OverlapDocument(msgspec.Struct, frozen=True):
    """How much two streams of a device overlapped, as recorded."""

    device: int
    streams: tuple[int, ...]
    work_us: tuple[float, ...]
    shared_us: float
