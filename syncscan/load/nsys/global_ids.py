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
from syncscan.model.arrays import Int32, Int64
from syncscan.model.trace import NONE

_BITS = 24
_LOW = (1 << _BITS) - 1
_APART = 32
"""Bits by which a process's launch numbers are moved: each process counts its own, in 32 bits."""
DEVICE_TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


class Processes:
    """The processes of an export, numbered in order of appearance, and their threads' tracks.

    `only` is the pid of the process to read, None for all.
    """

    def __init__(self, database: Database, columns: Columns, only: int | None) -> None:
        self._columns, self.only = columns, only
        self._numbers: dict[int, int] = {}
        self._tracks: dict[int, int] = {}
        self._streams: dict[tuple[int, int], int] = {}
        self._names = _names_of_processes(database)
        self._threads = _names_of_threads(database)

    def where(self, columns: frozenset[str]) -> str:
        """Return the condition that leaves the rows of the process to read, for a table with these columns."""
        name = next((name for name in ("globalTid", "globalPid") if name in columns), None)
        return "" if self.only is None or name is None else f"({name} >> {_BITS}) & {_LOW} = {self.only}"

    def threads(self, ids: Int64) -> Int32:
        """Return the track of each of these global thread ids."""
        return mapped(ids, self._track)

    def correlations(self, ids: Int64, of: Int64) -> Int64:
        """Return launch numbers that no two processes share; `ids` are of threads or processes."""
        processes = mapped(ids >> _BITS, self._number).astype(np.int64)
        return np.where(of == NONE, NONE, of + (processes << _APART))

    def streams(self, ids: Int64, device: Int64, stream: Int64) -> Int32:
        """Return the tracks of these streams; a process's own where several use a stream of the same number."""
        processes = mapped(ids >> _BITS, self._number)
        keys = (processes.astype(np.int64) << 12 | device & 0xFFF) << 32 | stream & 0xFFFFFFFF
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        of_keys = zip(processes[first].tolist(), device[first].tolist(), stream[first].tolist(), strict=True)
        tracks: Int32 = np.array([self._stream(*key) for key in of_keys], np.int32)[place.reshape(-1)]
        return tracks

    def _number(self, process: int) -> int:
        """Return the number of a process; the first one's where a row doesn't say."""
        if process < 0:
            return 0
        return self._numbers.setdefault(process, len(self._numbers))

    def _track(self, thread: int) -> int:
        if thread not in self._tracks:
            process = thread >> _BITS
            self._number(process)
            self._tracks[thread] = self._columns.track(
                self._pid(process), str(thread & _LOW), self._names.get(process, ""), self._threads.get(thread, "")
            )
        return self._tracks[thread]

    def _pid(self, process: int) -> str:
        """Return a process's pid, with the host's number where several hosts have such a process."""
        pid = process & _LOW
        others = [other for other in self._numbers if other & _LOW == pid]
        return str(pid) if others[:1] in ([], [process]) else f"{pid} ({process >> _BITS})"

    def _stream(self, process: int, device: int, stream: int) -> int:
        first = self._streams.setdefault((device, stream), process)
        return self._columns.track(str(device), str(stream) if first == process else f"{stream} ({process})")


def mapped(keys: Int64, number: Callable[[int], int]) -> Int32:
    """Return the number of each of these keys, by a function that is called once for each that occurs."""
    every, place = np.unique(keys, return_inverse=True)
    numbers: Int32 = np.array([number(key) for key in every.tolist()], np.int32)[place.reshape(-1)]
    return numbers


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
    for ids, names, _ in database.numbers("ThreadNames", ["globalTid", "nameId", "priority"], "ORDER BY priority"):
        threads.update(zip(ids.tolist(), names.tolist(), strict=True))
    texts = database.texts(set(threads.values()))
    return {thread: text(texts.get(name)) for thread, name in threads.items()}


def launching(database: Database) -> list[str]:
    """Return the pids of the processes that started device work, those that started most first."""
    launched: Counter[int] = Counter()
    for table in DEVICE_TABLES:
        for (ids,) in database.numbers(f"CUPTI_ACTIVITY_KIND_{table}", ["globalPid"]):
            every, counts = np.unique(ids[ids != NONE] >> _BITS & _LOW, return_counts=True)
            launched.update(dict(zip(every.tolist(), counts.tolist(), strict=True)))
    return [str(pid) for pid, _ in sorted(launched.items(), key=lambda one: (-one[1], one[0]))]
