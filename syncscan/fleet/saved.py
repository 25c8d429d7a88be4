"""Convert a Fleet to the document of its JSON report and back; `check` and `diff` read it in place of all traces.

The document leaves out data that only a replay needs.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from syncscan.model.fleet import Fleet

SCHEMA = "syncscan.fleet/3"
_NAME = re.compile(r".+\.fleet\.json", re.IGNORECASE)
LONGEST_US = 1e15
"""Longest accepted time of a job, thirty years: sums of accepted times stay exact enough."""


def named_as_fleet(name: str) -> bool:
    """Return whether a name is that of a saved fleet: `NAME.fleet.json`."""
    return _NAME.fullmatch(name) is not None


def without_replay(fleet: Fleet) -> Fleet:
    """Return the job without each rank's collectives and program."""
    ranks = (replace(rank, of=replace(rank.of, collectives=(), graph=None)) for rank in fleet.ranks)
    return replace(fleet, ranks=tuple(ranks))


def fleet_of(text: bytes) -> Fleet:
    """Return the job of a document, without the data that a replay needs; a ValueError for another schema."""
    document = msgspec.json.decode(text, type=dict[str, Any])
    if document.get("schema") != SCHEMA or "job" not in document:
        raise ValueError(f"its schema is {document.get('schema')!r}, not {SCHEMA!r}")
    job = document["job"]
    _refuse_endless(job)
    return msgspec.convert(job, type=Fleet)


def _refuse_endless(value: Any) -> None:
    """Reject numbers whose sum may be infinite."""
    if isinstance(value, float) and abs(value) > LONGEST_US:
        raise ValueError(f"{value} µs is longer than any job")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_endless(inner)
