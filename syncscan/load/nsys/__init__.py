"""Read an export of Nsight Systems into a linked Trace, with the columns that a trace of torch.profiler has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.facts.chosen_process import only_one
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
    path: str, name: str, process: str | None = None, progress: Progress | None = None, max_memory: int | None = None
) -> Trace:
    """Read the export at a path, which is called `name` in messages.

    Of several processes all are read, or the one with the pid `process`, or for an empty text the one that launched
    most.
    """
    database = Database(path, name)
    try:
        pids = [] if process is None else launching(database)
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


class _ExportReader:
    def __init__(
        self, database: Database, path: str, process: str | None, progress: Progress | None, most: int | None
    ) -> None:
        self._database, self._progress, self._most = database, progress, most
        self._columns, self._size = Columns(Damage()), Path(path).stat().st_size
        self._process = None if process is None else int(process)
        self._total = database.total(_LARGE_TABLES)

    def trace(self, name: str, notes: Iterable[str] = ()) -> Trace:
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
        info = trace_info(metadata_of(database), name, self._size, unlinked)
        notes = [*notes, *notes_of(database, ops.ops, lines)]
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
