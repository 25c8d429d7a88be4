"""Read an export of Nsight Systems into a linked Trace, with the columns that a trace of torch.profiler has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from syncscan.load.columns import Columns
from syncscan.load.damage import UNFINISHED, Damage
from syncscan.load.info import trace_info
from syncscan.load.link import linked_trace
from syncscan.load.memory_check import require
from syncscan.load.nsys import ranges
from syncscan.load.nsys.about_recording import metadata_of, notes_of
from syncscan.load.nsys.activities import Activities
from syncscan.load.nsys.call_chains import add_frames
from syncscan.load.nsys.database import Database
from syncscan.load.nsys.global_ids import DEVICE_TABLES, Processes, launching
from syncscan.load.nsys.named_steps import with_named_steps
from syncscan.load.nsys.ranges import Ranges
from syncscan.model.trace import Trace

Progress = Callable[[int, int], None]
_LARGE_TABLES = (ranges.TABLE, *(f"CUPTI_ACTIVITY_KIND_{table}" for table in ("RUNTIME", *DEVICE_TABLES)))


def read(
    path: str, name: str, process: int | None = None, progress: Progress | None = None, max_memory: int | None = None
) -> Trace:
    """Read the export at a path, which is called `name` in messages; of a `process` (its pid), if given, alone."""
    database = Database(path, name)
    try:
        return _ExportReader(database, Path(path).stat().st_size, process, progress, max_memory).trace()
    finally:
        database.close()


def processes_in(path: str) -> list[int]:
    """Return the pids of the processes in an export that launched device work, ascending."""
    database = Database(path, path)
    try:
        return launching(database)
    finally:
        database.close()


class _ExportReader:
    def __init__(
        self, database: Database, size: int, process: int | None, progress: Progress | None, most: int | None
    ) -> None:
        self._database, self._size, self._progress, self._most = database, size, progress, most
        self._columns = Columns(Damage())
        self._process = process
        self._total = database.total(_LARGE_TABLES)

    def trace(self) -> Trace:
        database, columns = self._database, self._columns
        processes = Processes(database, columns, self._process)
        activities = Activities(database, columns, processes, self._read)
        activities.read()
        ops = Ranges(database, columns, processes, self._read)
        ops.read()
        lines = add_frames(database, columns, activities.chains)
        unlinked = columns.finish()
        if database.damaged:
            columns.damage.notes.append(UNFINISHED)
        name = database.name if self._process is None else f"{database.name}/{self._process}"
        info = trace_info(metadata_of(database), name, self._size, unlinked)
        notes = notes_of(database, ops.ops, lines)
        return with_named_steps(
            linked_trace(replace(info, warnings=(*info.warnings, *notes)), unlinked, columns.damage)
        )

    def _read(self) -> None:
        """Require that what was read fits into memory, and report progress."""
        require(self._columns, self._database.name, self._most)
        if self._progress:
            done = min(self._database.rows_read / max(self._total, 1), 1.0)
            self._progress(int(self._size * done), self._size)


__all__ = ["processes_in", "read"]
