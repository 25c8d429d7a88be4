"""Common parts of all `--format json` documents.

A document is a Struct next to the function that builds it: msgspec encodes it unchanged, and the files in
`syncscan/schemas` are generated from the same types (`pytest tests/report/test_schemas.py --update-golden`;
tests/schemas.py has their versions). Times are µs, means per step unless a name says otherwise; None is unknown.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from syncscan.model.diff import Promise

Range = Annotated[tuple[float, ...], msgspec.Meta(min_length=2, max_length=2)]


def about(words: str) -> msgspec.Meta:
    return msgspec.Meta(description=words)


class Document(msgspec.Struct, frozen=True):
    """Keys with which every document begins."""

    schema: str
    syncscan: Annotated[str, about("the version that wrote this")]


class PromiseDocument(msgspec.Struct, frozen=True):
    """Savings projected for the removed syncs, and whether they came true."""

    saving_us: float
    range_us: Range
    kept: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["yes", "less", "more", "unknown"]})]


def promise_document(promise: Promise | None) -> PromiseDocument | None:
    if promise is None:
        return None
    return PromiseDocument(saving_us=promise.saving_us, range_us=promise.range_us, kept=promise.kept.name.lower())
