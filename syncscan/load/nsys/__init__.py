"""Read an export of Nsight Systems into a linked Trace, with the columns that a trace of torch.profiler has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from syncscan.errors import TraceTooLarge, TraceUnreadable, UsageError
from syncscan.facts.chosen_process import only_one
from syncscan.load import second_process
from syncscan.load.columns import Columns
from syncscan.load.damage import UNFINISHED, Damage
from syncscan.load.link import linked_trace
from syncscan.load.memory_check import require
from syncscan.load.metadata import trace_info
from syncscan.load.nsys import ranges
from syncscan.load.nsys.activities import OS_TABLE, Activities, add_frames
from syncscan.load.nsys.database import Database, text
from syncscan.load.nsys.global_ids import DEVICE_TABLES, Processes, launching
from syncscan.load.nsys.named_steps import with_named_steps
from syncscan.load.nsys.ranges import Ranges
from syncscan.model.trace import Trace

Progress = Callable[[int, int], None]


def read(
    path: str, name: str, process: str | None = None, progress: Progress | None = None, max_memory: int | None = None
) -> Trace:
    """Read the export at a path, which is called `name` in messages.

    Of several processes all are read, or the one with the pid `process`, or for an empty text the one that launched
    most.
    """
    database = Database(path, name)
    try:
        pids = [] if process is None else launching(database, process)
        if process and process not in pids:
            raise UsageError(
                f"{database.name} has no process {process} that launches work.", f"It has {', '.join(pids) or 'none'}."
            )
        pids.sort(key=lambda pid: pid != process)
        reader = _ExportReader(database, path, pids[0] if len(pids) > 1 else None, progress, max_memory)
        return reader.trace(database.name, only_one(pids))
    finally:
        database.close()


def read_process(
    path: str, name: str, process: str, progress: Progress | None = None, max_memory: int | None = None
) -> Trace:
    """Read one process of an export, as a trace of its own."""
    database = Database(path, name)
    try:
        return _ExportReader(database, path, process, progress, max_memory).trace(f"{database.name}/{process}")
    finally:
        database.close()


def processes_in(path: str) -> list[str]:
    """Return the pids of the processes in an export that launched device work, ascending."""
    database = Database(path, path)
    try:
        return sorted(launching(database), key=int)
    finally:
        database.close()


_Share: TypeAlias = "tuple[Columns, int, set[int], str]"
"""Rows of the tables that a second process read; how many ops and which libraries it saw, and what is damaged."""


class _ExportReader:
    """Reads an export in two shares: the host's tables and the first ranges, and the device's and the other ranges."""

    def __init__(
        self, database: Database, path: str, process: str | None, progress: Progress | None, most: int | None
    ) -> None:
        self._database, self._path, self._process = database, path, process
        self._progress, self._most = progress, most
        self._columns, self._size = Columns(Damage()), Path(path).stat().st_size
        processes = Processes(database, self._columns, None if process is None else int(process))
        self._activities = Activities(database, self._columns, processes, self._read)
        self._ranges = Ranges(database, self._columns, processes, self._read)
        host, device = (
            database.total([*(f"CUPTI_ACTIVITY_KIND_{table}" for table in tables), other])
            for tables, other in ((("RUNTIME", "SYNCHRONIZATION"), OS_TABLE), (DEVICE_TABLES, ""))
        )
        of_ranges = max(database.total([ranges.TABLE]), 1)
        self._total = host + device + of_ranges
        self._half = min(max((of_ranges + device - host) / (2 * of_ranges), 0.0), 1.0)
        """The part of the ranges that makes the shares equal."""

    def trace(self, name: str, notes: Iterable[str] = ()) -> Trace:
        columns, damaged = self._columns, self._read_all()
        if not columns.rows and not damaged:
            raise TraceUnreadable(
                f"{name} has no calls of CUDA, no device work and no NVTX ranges.",
                "Record with nsys profile -t cuda,nvtx, and end the program normally.",
            )
        lines = add_frames(self._database, columns, self._activities)
        unlinked = ranges.without(columns.finish(), self._ranges.libraries)
        if damaged:
            columns.damage.notes.append(UNFINISHED)
        info = trace_info(_metadata(self._database), name, self._size, unlinked)
        notes = [*notes, *_notes(self._database, self._ranges.ops, lines)]
        return with_named_steps(
            linked_trace(replace(info, warnings=(*info.warnings, *notes)), unlinked, columns.damage)
        )

    def _read_all(self) -> str:
        """Read both shares, the second in a process of its own if that is worthwhile; return what is damaged."""
        share = None
        if self._size < second_process.WORTHWHILE_BYTES or not second_process.possible():
            self._read_first_share()
        else:
            try:
                with second_process.second_process(self._second_share) as result:
                    self._read_first_share()
                    share = result()
            except OSError:
                self._read_first_share()
        if share is None:
            self.read_second_share()
            return self._database.damaged
        columns, ops, libraries, damaged = share
        self._columns.absorb(columns)
        require(self._columns, self._database.name, self._most)
        self._ranges.ops += ops
        self._ranges.libraries |= libraries
        return self._database.damaged or damaged

    def _read_first_share(self) -> None:
        self._activities.read_host()
        self._ranges.read((0.0, self._half))

    def read_second_share(self) -> _Share:
        self._activities.read_device()
        self._ranges.read((self._half, 1.0))
        return self._columns, self._ranges.ops, self._ranges.libraries, self._database.damaged

    def _second_share(self) -> _Share | None:
        most = None if self._most is None else self._most // 2
        database = Database(self._path, self._database.name)  # an open file isn't shared with another process
        try:
            return _ExportReader(database, self._path, self._process, None, most).read_second_share()
        except TraceTooLarge:  # the first process says so
            return None

    def _read(self) -> None:
        """Require that what was read fits into memory, and report progress."""
        require(self._columns, self._database.name, self._most)
        if self._progress:
            done = min(self._database.rows_read / max(self._total, 1), 1.0)
            self._progress(int(self._size * done), self._size)


_LOST = re.compile(r"(?i)not all CUDA events|CUDA[^.]* (lost|dropped)|(lost|dropped)[^.]* CUDA")


def _metadata(database: Database) -> dict[str, Any]:
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


def _notes(database: Database, ops: int, lines: bool) -> list[str]:
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
    sentences = [text(stored).strip() for block in rows for (stored,) in block]
    return [sentence[:200] for sentence in sentences if _LOST.search(sentence)]


__all__ = ["processes_in", "read", "read_process"]
