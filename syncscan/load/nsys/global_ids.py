"""Threads and processes by the numbers that Nsight Systems gives them.

A global thread id has the thread in its low 24 bits, then 24 bits of the process; above are the virtual machine and the
host. A process's global id is the same with no thread (User Guide, "Serialized process and thread identifiers").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from syncscan.load.columns import Columns
from syncscan.load.nsys.database import Database, text
from syncscan.load.nsys.lookup import Lookup
from syncscan.model.arrays import Bool, Int32, Int64
from syncscan.model.trace import NONE

_BITS = 24
_LOW = (1 << _BITS) - 1
_APART = 32
"""Bits by which a process's launch numbers are moved: each process counts its own, in 32 bits."""
DEVICE_TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


class Processes:
    """The processes of an export, and their threads' tracks.

    They are numbered as the export lists them, others in order of appearance. `only` is the pid of the process to read,
    None for all.
    """

    def __init__(self, database: Database, columns: Columns, only: int | None) -> None:
        self._columns, self._only = columns, only
        self._names = _names_of_processes(database)
        self._threads = _names_of_threads(database)
        self._numbers = {process: number for number, process in enumerate(sorted(self._names))}
        self._streams: dict[tuple[int, int], int] = {}
        self._track_of = Lookup(lambda threads, _: list(map(self._track, threads.tolist())))
        self._number_of = Lookup(lambda processes, _: list(map(self._number, processes.tolist())))
        self._stream_of = Lookup(lambda keys, _: list(map(self._stream, keys.tolist())))

    @property
    def chosen(self) -> Callable[[Int64], Bool] | None:
        """Tells which global ids, of threads or processes, belong to the process to read; None if all do."""
        only = self._only
        return None if only is None else lambda ids: ids >> _BITS & _LOW == only

    def threads(self, ids: Int64) -> Int32:
        """Return the track of each of these global thread ids."""
        tracks: Int32 = self._track_of.of(ids)[0].astype(np.int32)
        return tracks

    def correlations(self, ids: Int64, of: Int64) -> Int64:
        """Return launch numbers that no two processes share; `ids` are of threads or processes."""
        return np.where(of == NONE, NONE, of + (self._number_of.of(ids >> _BITS)[0] << _APART))

    def streams(self, ids: Int64, device: Int64, stream: Int64) -> Int32:
        """Return the tracks of these streams; a process's own where several use a stream of the same number."""
        processes = self._number_of.of(ids >> _BITS)[0]
        keys = (processes << 12 | device & 0xFFF) << 32 | stream & 0xFFFFFFFF
        tracks: Int32 = self._stream_of.of(keys)[0].astype(np.int32)
        return tracks

    def _number(self, process: int) -> int:
        """Return the number of a process; the first one's where a row doesn't say."""
        if process < 0:
            return 0
        return self._numbers.setdefault(process, len(self._numbers))

    def _track(self, thread: int) -> int:
        process = thread >> _BITS
        self._number(process)
        return self._columns.track(
            self._pid(process), str(thread & _LOW), self._names.get(process, ""), self._threads.get(thread, "")
        )

    def _pid(self, process: int) -> str:
        """Return a process's pid, with the host's number where several hosts have such a process."""
        pid = process & _LOW
        others = [other for other in self._numbers if other & _LOW == pid]
        return str(pid) if others[:1] in ([], [process]) else f"{pid} ({process >> _BITS})"

    def _stream(self, key: int) -> int:
        process, device, stream = key >> 44, key >> 32 & 0xFFF, key & 0xFFFFFFFF
        device, stream = (NONE if device == 0xFFF else device), (NONE if stream == 0xFFFFFFFF else stream)
        first = self._streams.setdefault((device, stream), process)
        return self._columns.track(str(device), str(stream) if first == process else f"{stream} ({process})")


def _names_of_processes(database: Database) -> Mapping[int, str]:
    """Return the name of each process, by its global id without the bits of a thread."""
    columns = database.columns_of("PROCESSES")
    if not {"globalPid", "name"} <= columns:
        return {}
    rows = database.rows("SELECT CAST(globalPid AS INTEGER), CAST(name AS BLOB) FROM PROCESSES")
    return {number >> _BITS: text(name) for block in rows for number, name in block if number is not None}


def _names_of_threads(database: Database) -> Mapping[int, str]:
    """Return the name of each thread, by its global id; of several the one of the highest priority."""
    threads: dict[int, int] = {}
    for portion in database.numbers("ThreadNames", ["priority", "globalTid", "nameId"]):
        threads.update({thread: name for _, thread, name in sorted(portion.T.tolist())})
    texts = database.texts(set(threads.values()))
    return {thread: text(texts.get(name)) for thread, name in threads.items()}


_LOOKED_AT = 1 << 12
"""Pages of each table to look for processes in."""


def launching(database: Database, named: str | None = None) -> list[str]:
    """Return the pids of the processes that started device work, those that started most first.

    Of a big table a part is looked at, and all of it if the process that is `named` isn't in that.
    """
    pids = _launching(database, _LOOKED_AT)
    return pids if not named or named in pids else _launching(database, None)


def _launching(database: Database, pages: int | None) -> list[str]:
    launched: Counter[int] = Counter()
    for table in DEVICE_TABLES:
        for (ids,) in database.numbers(f"CUPTI_ACTIVITY_KIND_{table}", ["globalPid"], pages):
            every, counts = np.unique(ids[ids != NONE] >> _BITS & _LOW, return_counts=True)
            launched.update(dict(zip(every.tolist(), counts.tolist(), strict=True)))
    return [str(pid) for pid, _ in sorted(launched.items(), key=lambda one: (-one[1], one[0]))]
