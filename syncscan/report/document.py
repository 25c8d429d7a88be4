"""Common parts of all `--format json` documents.

A document is a Struct next to the function that builds it: msgspec encodes it unchanged, and the files in
`schemas` are generated from the same types (`pytest tests/report/test_schemas.py --update-golden`;
tests/schemas.py has their versions). Times are µs, means per step unless a name says otherwise; None is unknown.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from syncscan.model.json_text import about


class Document(msgspec.Struct, frozen=True):
    """Keys with which every document begins."""

    schema: str
    syncscan: Annotated[str, about("the version that wrote this")]
