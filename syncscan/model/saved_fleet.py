"""From a Fleet to the document that its JSON report is, and back: what `check` and `diff` read in place of all traces.

The document leaves out what only a replay needs: each rank's collectives and its program.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from syncscan.model.fleet import Fleet

SCHEMA = "syncscan.fleet/1"
_NAME = re.compile(r".+\.fleet\.json", re.IGNORECASE)
LONGEST_US = 1e15
"""No time of a job is longer, and sums of shorter ones can be counted with: thirty years."""
_LEFT_OUT: dict[str, Any] = {"collectives": [], "graph": None}


class _Document(msgspec.Struct):
    """What is read of a document; the words beside it are for other programs."""

    schema: str
    job: msgspec.Raw


def named_as_fleet(name: str) -> bool:
    """Whether a name is that of a saved fleet: `NAME.fleet.json`."""
    return _NAME.fullmatch(name) is not None


def document(fleet: Fleet) -> dict[str, Any]:
    """The job as plain dicts and lists, field by field as `model.fleet` and `model.rank` document them."""
    job: dict[str, Any] = msgspec.to_builtins(fleet)
    for rank in job["ranks"]:
        rank["of"] = {name: value for name, value in rank["of"].items() if name not in _LEFT_OUT}
    return job


def fleet_of(text: bytes) -> Fleet:
    """The job that a document is of; it can be asked anything but for what takes a replay.

    Raises:
        ValueError: it is none, or of another schema.
    """
    head = msgspec.json.decode(text, type=_Document)
    if head.schema != SCHEMA:
        raise ValueError(f"its schema is {head.schema!r}, not {SCHEMA!r}")
    job = msgspec.json.decode(head.job)
    _refuse_endless(job)
    for rank in job["ranks"] if isinstance(job, dict) and isinstance(job.get("ranks"), list) else ():
        if isinstance(rank, dict) and isinstance(rank.get("of"), dict):
            rank["of"] |= _LEFT_OUT
    return msgspec.convert(job, type=Fleet)


def _refuse_endless(value: Any) -> None:
    """Refuse numbers of which a sum may have no end."""
    if isinstance(value, float) and abs(value) > LONGEST_US:
        raise ValueError(f"{value} µs is longer than any job")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_endless(inner)
