"""Read what Nsight Systems recorded but ranges: calls, device work, synchronizations and the profiler's own work.

Names become those that torch.profiler gives the same things (libkineto/src/cupti_strings.cpp), since the rules know
these. Call chains of calls (`--cudabacktrace`) and Python stacks (`--python-backtrace=cuda`, `--python-sampling`)
become Python frames.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from syncscan.load.columns import Columns
from syncscan.load.nsys.database import Database, text
from syncscan.load.nsys.global_ids import Processes
from syncscan.load.nsys.lookup import Lookup
from syncscan.model.arrays import Int32, Int64, among, grouped
from syncscan.model.interval import Cover, union
from syncscan.model.runtime_calls import is_query
from syncscan.model.trace import NONE, Category

_CUPTI = "CUPTI_ACTIVITY_KIND_"
OS_TABLE = "OSRT_API"
_VERSION = re.compile(r"_v\d{4,5}\Z")
"""The version of a runtime call: `cudaMemcpyAsync_v3020`."""
_OF_DRIVER = 1
"""Number of a call of the driver in ENUM_NSYS_EVENT_CLASS; others are the runtime's."""
_MEMORY = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
"""Kinds of memory by number (ENUM_CUDA_MEM_KIND)."""
_COPIES = ("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
"""Directions of copies by number (ENUM_CUDA_MEMCPY_OPER); further ones are migrations of unified memory, which no call
starts and no stream waits for."""
_SYNCS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
"""ENUM_CUPTI_SYNC_TYPE."""
_OVERHEADS = {
    2: "Driver Compiler",
    3: "Buffer Flush",
    4: "Instrumentation",
    5: "Resource",
    6: "Runtime Triggered Module Loading",
    7: "Lazy Function Loading",
    8: "Command Buffer Full",
}
"""ENUM_CUPTI_OVERHEAD_TYPE."""
_IS_STACK = "eventType = 34 AND binaryData IS NOT NULL AND start IS NOT NULL"
_STACKS = f"SELECT globalTid, CAST(start AS INTEGER), CAST(binaryData AS BLOB) FROM NVTX_EVENTS WHERE {_IS_STACK}"
"""Marks with the Python stacks of `--python-backtrace=cuda` and `--python-sampling`, which NVIDIA doesn't document. Two
users' programs read their payload so: 32 bytes of NVTX, 8 bytes, the thread's state, the number of frames, frames."""
_STACK_HEADER = 48
_FRAME = np.dtype([("function", "<i8"), ("file", "<i8"), ("line", "<u4"), ("unused", "<u4")])
"""A frame, the innermost first; function and file are ids of texts."""
_ONE_OP_NS = 20_000
"""How long after a copy the wait of the same op begins at the latest."""
_LONGEST_NS = 1 << 60
"""Larger times (36 years) are invalid."""


class Activities:
    """Reads an export's tables into columns, after each portion calling `read`."""

    def __init__(
        self, database: Database, columns: Columns, processes: Processes, read: Callable[[], None] = lambda: None
    ) -> None:
        self._database, self._columns, self._processes, self._read = database, columns, processes, read
        self._calls, self._kernels = Lookup(self._named_calls, 2), Lookup(self._named_kernels)
        self._queries: list[Int64] = []
        """Launch numbers of calls that only ask."""
        self._spans: list[Int64] = []
        """Thread, begin and end of each call, portion by portion, if they are asked for."""
        self.chains: list[tuple[Int32, Int64, Int64, Int64]] = []
        """Track, begin, end and call chain of each call that has one, portion by portion."""

    def read_host(self) -> None:
        self._read_calls()
        self._read_os_calls()
        self._read_syncs()
        self._read_overheads()

    def read_device(self) -> None:
        self._read_kernels()
        self._read_graphs()
        self._read_copies()
        self._read_memsets()

    def _read_calls(self) -> None:
        for portion in self._portions("RUNTIME", ["globalTid", "eventClass", "correlationId", "nameId", "callchainId"]):
            ts, dur, thread, kind, correlation, name, chain = portion
            track, (called, asks) = self._processes.threads(thread), self._calls.of(name)
            launch = self._processes.correlations(thread, correlation)
            # CUPTI writes a synchronization for a query too
            self._queries.append(launch[asks > 0])
            self._add(
                np.where(kind == _OF_DRIVER, Category.DRIVER, Category.RUNTIME).astype(np.int8),
                {"ts": ts, "dur": dur, "track": track, "name": called.astype(np.int32), "correlation": launch},
            )
            if self._has_stacks or OS_TABLE in self._database.tables:
                self._spans.append(np.array([thread, ts, ts + dur]))
            has_chain = chain > 0
            if has_chain.any():
                self.chains.append((track[has_chain], ts[has_chain], (ts + dur)[has_chain], chain[has_chain]))

    def _read_os_calls(self) -> None:
        """Read the outermost calls of the OS on threads that call CUDA, but those that overlap a call of it."""
        for portion in self._portions(OS_TABLE, ["globalTid", "nameId", "nestingLevel"]):
            apart = np.zeros(len(portion[0]), np.bool_)
            for one, rows in grouped(portion[2]):
                ts, dur = portion[0][rows], portion[1][rows]
                apart[rows] = one in self._in_calls and self._in_calls[one].within(ts, ts + dur) == 0
            ts, dur, thread, name, _ = (column[apart & (portion[4] <= 0)] for column in portion)
            names, track = self._calls.of(name)[0].astype(np.int32), self._processes.threads(thread)
            self._add(Category.OS_CALL, {"ts": ts, "dur": dur, "track": track, "name": names})

    @cached_property
    def _has_stacks(self) -> bool:
        there = {"globalTid", "eventType", "binaryData"} <= self._database.columns_of("NVTX_EVENTS")
        return there and self._database.begins_with("NVTX_EVENTS", _IS_STACK)

    @cached_property
    def _in_calls(self) -> dict[int, Cover]:
        """When each thread was in a call."""
        calls: Int64 = np.concatenate([np.zeros((3, 0), np.int64), *self._spans], axis=1)
        calls = calls[:, np.argsort(calls[1], kind="stable")]
        return {one: Cover(*union(*calls[1:, rows])) for one, rows in grouped(calls[0])}

    def read_stacks(self) -> dict[int, list[str]]:
        """Return the Python stacks taken in calls by a negative number, and add these calls to `chains`.

        A stack tells of the call just before that, too: an op that waits copies first.
        """
        numbers: dict[bytes, int] = {}
        for block in self._database.rows(_STACKS) if self._has_stacks else ():
            for thread, at, stored in block:
                if thread not in self._in_calls:
                    continue
                starts, ends = self._in_calls[thread].starts, self._in_calls[thread].ends
                call = int(starts.searchsorted(at, side="right")) - 1
                if call < 0 or ends[call] < at:
                    continue
                first = call - int(call > 0 and starts[call] - ends[call - 1] < _ONE_OP_NS)
                number = np.array([numbers.setdefault(stored[_STACK_HEADER:], NONE - 1 - len(numbers))])
                track = self._processes.threads(np.array([thread]))
                self.chains.append((track, starts[first : first + 1], ends[call : call + 1], number))
        return {number: list(_stack(self._database, frames)) for frames, number in numbers.items()}

    def _named_calls(self, ids: Int64, _: Int64) -> Any:
        """Return the numbers of the names with these ids, and which only ask if an event or a stream is done."""
        names = [_VERSION.sub("", name) for name in self._texts(ids)]
        return [list(map(self._columns.name, names)), list(map(is_query, names))]

    def _named_kernels(self, ids: Int64, _: Int64) -> Any:
        return list(map(self._columns.name, self._texts(ids)))

    def _texts(self, ids: Int64) -> list[str]:
        texts = self._database.texts(ids.tolist())
        return [text(texts.get(number)) or "(unnamed)" for number in ids.tolist()]

    def _read_kernels(self) -> None:
        name = "demangledName shortName mangledName"
        for ts, dur, *work, named, x, y, z in self._portions("KERNEL", [*_WORK, name, "gridX", "gridY", "gridZ"]):
            blocks = x * y * z
            valid = (x > 0) & (y > 0) & (z > 0) & (blocks > 0) & (blocks < 1 << 31)
            values = {
                "name": self._kernels.of(named)[0].astype(np.int32),
                "blocks": np.where(valid, blocks, NONE).astype(np.int32),
            }
            self._add(Category.KERNEL, {"ts": ts, "dur": dur, **self._placed(*work), **values})

    def _read_graphs(self) -> None:
        """Read the launches of graphs that were recorded as a whole, each as one kernel."""
        for ts, dur, *work, graph in self._portions("GRAPH_TRACE", [*_WORK, "graphId"]):
            names = self._listed(graph, lambda number: f"CUDA graph {number}" if number >= 0 else "CUDA graph")
            self._add(Category.KERNEL, {"ts": ts, "dur": dur, **self._placed(*work), "name": names})

    def _read_copies(self) -> None:
        for portion in self._portions("MEMCPY", [*_WORK, "bytes", "copyKind", "srcKind", "dstKind"]):
            done = portion[_KIND_OF_COPY] < len(_COPIES)
            ts, dur, *work, size, kind, source, target = (column[done] for column in portion)
            names = self._listed((kind << 4 | source & 15) << 4 | target & 15, _copy_name)
            self._add(Category.MEMCPY, {"ts": ts, "dur": dur, **self._placed(*work), "name": names, "bytes": size})

    def _read_memsets(self) -> None:
        for ts, dur, *work, size, kind in self._portions("MEMSET", [*_WORK, "bytes", "memKind"]):
            names = self._listed(kind, lambda number: f"Memset ({_memory(number)})")
            self._add(Category.MEMSET, {"ts": ts, "dur": dur, **self._placed(*work), "name": names, "bytes": size})

    def _read_syncs(self) -> None:
        records, queries = self._event_records(), np.sort(np.concatenate([np.zeros(0, np.int64), *self._queries]))
        for portion in self._portions("SYNCHRONIZATION", [*_WORK, "syncType deprecatedSyncType", "eventSyncId"]):
            waits = ~among(self._processes.correlations(portion[2], portion[5]), queries)
            ts, dur, *work, kind, event = (column[waits] for column in portion)
            values: dict[str, Any] = {"name": self._listed(kind, lambda number: _SYNCS.get(number, "Sync"))}
            if records:
                process = work[0]
                keys = zip(process.tolist(), event.tolist(), strict=True)
                awaited = np.array([records.get(key, NONE) for key in keys], np.int64)
                values["awaits"] = self._processes.correlations(process, awaited)
            self._add(Category.SYNC, {"ts": ts, "dur": dur, **self._placed(*work), **values})

    def _event_records(self) -> dict[tuple[int, int], int]:
        """Return the correlation of each event's record call, by process and the event's number."""
        columns = ["globalPid", "eventSyncId", "correlationId"]
        table = f"{_CUPTI}CUDA_EVENT"
        if "eventSyncId" not in self._database.columns_of(table):
            return {}
        return {
            (process, event): record
            for portion in self._database.numbers(table, columns)
            for process, event, record in portion.T.tolist()
            if event > 0
        }

    def _read_overheads(self) -> None:
        for table in ("PROFILER_OVERHEAD", f"{_CUPTI}OVERHEAD"):
            if "overheadType" not in self._database.columns_of(table):
                continue
            for ts, dur, thread, kind in self._portions(table, ["globalTid", "overheadType"]):
                names = self._listed(kind, lambda number: _OVERHEADS.get(number, "Unknown"))
                track = self._processes.threads(thread)
                self._add(Category.OVERHEAD, {"ts": ts, "dur": dur, "track": track, "name": names})

    def _portions(self, table: str, columns: Sequence[str]) -> Iterator[list[Int64]]:
        """Yield begin, duration and these columns, a global id first, of a table's rows that have usable times."""
        table = table if table in self._database.tables else f"{_CUPTI}{table}"
        of, *others = columns
        for portion in self._database.numbers(table, [of, "start", "end", *others], chosen=self._processes.chosen):
            ids, begin, end, *values = portion
            yield timed([begin, end, ids, *values], self._columns)

    def _placed(self, process: Int64, device: Int64, stream: Int64, correlation: Int64) -> dict[str, Any]:
        device, stream = _small(device), _small(stream)
        return {
            "device": device.astype(np.int32),
            "stream": stream.astype(np.int32),
            "track": self._processes.streams(process, device, stream),
            "correlation": self._processes.correlations(process, correlation),
        }

    def _listed(self, kinds: Int64, name: Callable[[int], str]) -> Int32:
        """Return the numbers of the names that these kinds have."""
        every, place = np.unique(kinds, return_inverse=True)
        numbers: Int32 = np.array([self._columns.name(name(kind)) for kind in every.tolist()], np.int32)
        return numbers[place]

    def _add(self, category: Any, values: dict[str, Any]) -> None:
        self._columns.add_columns(category, values)
        self._read()


_WORK = ["globalPid", "deviceId", "streamId", "correlationId"]
"""Columns of device work that `_placed` takes, in its order."""
_KIND_OF_COPY = 7
"""Place of a copy's kind among its columns."""


def timed(portion: Sequence[Int64], columns: Columns) -> list[Int64]:
    """Return begin, duration and further columns of the rows with usable times; the others are counted."""
    begin, end = portion[0], portion[1]
    usable = (begin > -_LONGEST_NS) & (begin < _LONGEST_NS) & (end > -_LONGEST_NS) & (end < _LONGEST_NS) & (end != NONE)
    columns.damage.untimed += int(len(usable) - np.count_nonzero(usable))
    begin, end, *others = portion if usable.all() else (column[usable] for column in portion)
    return [begin, np.maximum(end - begin, 0), *others]


def _small(numbers: Int64) -> Int64:
    """Return the numbers that fit into a column, NONE for others: 0xFFFFFFFF stands for none."""
    return np.where((numbers >= 0) & (numbers < 1 << 31), numbers, NONE)


def _memory(kind: int) -> str:
    return _MEMORY[kind] if 0 <= kind < len(_MEMORY) else "Unknown"


def _copy_name(packed: int) -> str:
    source, target, kind = packed >> 4 & 15, packed & 15, packed >> 8
    direction = _COPIES[kind] if 0 < kind < len(_COPIES) else ""
    return f"Memcpy {direction} ({_memory(source)} -> {_memory(target)})".replace("  ", " ")


TABLE = "CUDA_CALLCHAINS"
_PLACE = re.compile(r"(?P<file>[^\n]{1,4096}\.pyx?)[:(](?P<line>\d{1,9})\)?")
"""A line of Python, as a chain's symbol or module may name it: `train.py:12`, `train.py(12)`."""
_IN_SYMBOL = re.compile(r"(?P<function>[^\n]{1,1000}?) ?[@(\[](?P<place>[^\n]+\.pyx?[:(]\d{1,9}\)?)[)\]]?")


def add_frames(database: Database, columns: Columns, activities: Activities) -> bool:
    """Add the frames around the calls with a stack; return whether there were any.

    A frame lasts as long as the call, and 1 ns more on each side for each frame inside it, so that they nest.
    """
    chains = _python_frames(database) or activities.read_stacks()
    numbers: dict[str, int] = {}
    added = False
    for track, begin, end, chain in activities.chains if chains else ():
        rows = [
            (t, b - depth, e - b + 2 * depth, numbers.setdefault(frame, columns.name(frame)))
            for t, b, e, c in zip(track.tolist(), begin.tolist(), end.tolist(), chain.tolist(), strict=True)
            for depth, frame in enumerate(chains.get(c, ()), 1)
        ]
        if rows:
            tracks, ts, dur, names = np.array(rows, np.int64).T
            columns.add_columns(None, {"track": tracks, "ts": ts, "dur": dur, "name": names})
            added = True
    return added


def _python_frames(database: Database) -> dict[int, list[str]]:
    """Return the Python frames of each call chain, innermost first, as torch.profiler names frames."""
    chains: dict[int, list[str]] = {}
    portions = list(database.numbers(TABLE, ["id", "stackDepth", "symbol", "module"]))
    rows = np.concatenate(portions, axis=1) if portions else np.zeros((4, 0), np.int64)
    texts = {number: text(stored) for number, stored in database.texts(np.unique(rows[2:]).tolist()).items()}
    if any(".py" in stored for stored in texts.values()):
        for chain, _, symbol, module in rows[:, np.lexsort((rows[1], rows[0]))].T.tolist():
            if frame := _frame(texts.get(symbol, ""), texts.get(module, "")):
                chains.setdefault(chain, []).append(frame)
    return chains


def _stack(database: Database, payload: bytes) -> Iterator[str]:
    """Yield a stack's Python frames, the innermost first; none of a payload that is something else."""
    if not payload or len(payload) % _FRAME.itemsize:
        return
    frames = np.frombuffer(payload, _FRAME)
    texts = database.texts({*frames["function"].tolist(), *frames["file"].tolist()})
    for function, of_file, line, _ in frames.tolist():
        if (file := text(texts.get(of_file))).endswith((".py", ".pyx")):
            yield f"{file}({line}): {text(texts.get(function))}"


def _frame(symbol: str, module: str) -> str:
    """Return a Python frame as `file.py(LINE): function`; empty for one of another language."""
    if place := _PLACE.fullmatch(module):
        return f"{place['file']}({place['line']}): {symbol}"
    if (named := _IN_SYMBOL.fullmatch(symbol)) and (place := _PLACE.fullmatch(named["place"])):
        return f"{place['file']}({place['line']}): {named['function'].strip()}"
    if place := _PLACE.fullmatch(symbol):
        return f"{place['file']}({place['line']}): <module>"
    return ""
