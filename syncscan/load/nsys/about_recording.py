"""Read what an export says about the machine and the recording, and what it can't say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from syncscan.load.nsys.database import Database, text
from syncscan.load.nsys.global_ids import DEVICE_TABLES

_LOST = re.compile(r"(?i)not all CUDA events|CUDA[^.]* (lost|dropped)|(lost|dropped)[^.]* CUDA")


def metadata_of(database: Database) -> dict[str, Any]:
    """Return the devices and the time of the recording, under the keys that torch.profiler uses."""
    devices = list(_devices(database))
    base = _base_ns(database)
    return {**({"deviceProperties": devices} if devices else {}), **({"baseTimeNanoseconds": base} if base else {})}


def _devices(database: Database) -> Iterator[dict[str, Any]]:
    table = next((t for t in ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU") if t in database.tables), "")
    there = database.columns_of(table)
    if "name" not in there:
        return
    count, major, minor = (c if c in there else "NULL" for c in ("smCount", "computeMajor", "computeMinor"))
    for block in database.rows(f"SELECT CAST(name AS BLOB), {count}, {major}, {minor} FROM {table} ORDER BY id"):
        for name, multiprocessors, *capability in block:
            numbers = {"numSms": multiprocessors, "computeMajor": capability[0], "computeMinor": capability[1]}
            yield {"name": text(name), **{key: n for key, n in numbers.items() if isinstance(n, int)}}


def _base_ns(database: Database) -> int:
    """Return what is to be added to the export's times to get epoch nanoseconds; 0 if unknown.

    Up to schema 3.23 times count from the session's start; later they are the system's clock, which stands beside it.
    """
    columns = ["utcEpochNs", "systemClockNs"]
    for epochs, clocks in database.numbers("TARGET_INFO_SESSION_START_TIME", columns):
        return max(int(epochs[0]) - max(int(clocks[0]), 0), 0)
    return 0


def notes_of(database: Database, ops: int, lines: bool) -> list[str]:
    """Return sentences on what the export lacks, each with the option of nsys that records it."""
    notes = [f"Nsight Systems reports: {sentence}" for sentence in _losses(database)]
    if not any(f"CUPTI_ACTIVITY_KIND_{table}" in database.tables for table in DEVICE_TABLES):
        notes.append("The export has no device work: record with nsys profile -t cuda, and end the program normally.")
    lacking = []
    if not ops:
        lacking.append("ops (--pytorch=autograd-nvtx)")
    if not lines:
        lacking.append("source lines (syncscan profile)")
    if lacking:
        notes.append(f"The export of Nsight Systems has no {' and no '.join(lacking)}.")
    return notes


def _losses(database: Database) -> list[str]:
    if "text" not in database.columns_of("DIAGNOSTIC_EVENT"):
        return []
    rows = database.rows("SELECT DISTINCT CAST(text AS BLOB) FROM DIAGNOSTIC_EVENT LIMIT 1000")
    said = [text(stored).strip() for block in rows for (stored,) in block]
    return [sentence[:200] for sentence in said if _LOST.search(sentence)]
