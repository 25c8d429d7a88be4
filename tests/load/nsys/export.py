"""Builds exports of Nsight Systems, table by table, as `nsys export --type sqlite` writes them (schema 3.25)."""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path
from typing import Any

PAGEABLE, PINNED, DEVICE = 0, 1, 2
HTOD, DTOH = 1, 2


class Export:
    """Events in µs, of one process unless another pid is given; tables without rows aren't written."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self._strings: dict[str, int] = {}
        self._correlation = 0

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings) + 1)

    def row(self, table: str, **values: Any) -> None:
        self.tables.setdefault(table, []).append(values)

    def call(self, name: str, at: float, lasts: float = 5, pid: int = 10, tid: int | None = None, **values: Any) -> int:
        """A runtime call; return its correlation."""
        self._correlation += 1
        self.row(
            "CUPTI_ACTIVITY_KIND_RUNTIME",
            start=round(at * 1e3), end=round((at + lasts) * 1e3), globalTid=pid << 24 | (tid or pid),
            correlationId=self._correlation, nameId=self.string(name), returnValue=0,
            **{"eventClass": 0, "callchainId": None, **values},
        )  # fmt: skip
        return self._correlation

    def kernel(self, correlation: int, at: float, lasts: float, pid: int = 10, name: str = "kernel()") -> None:
        self._work("KERNEL", correlation, at, lasts, pid, demangledName=self.string(name), gridX=4, gridY=1, gridZ=2)

    def copy(self, correlation: int, at: float, lasts: float, pid: int = 10, **values: Any) -> None:
        self._work("MEMCPY", correlation, at, lasts, pid, **{"bytes": 4, "graphNodeId": None, **values})

    def sync(self, correlation: int, at: float, lasts: float, kind: int, pid: int = 10, **values: Any) -> None:
        self._work("SYNCHRONIZATION", correlation, at, lasts, pid, syncType=kind, **values)

    def _work(self, kind: str, correlation: int, at: float, lasts: float, pid: int, **values: Any) -> None:
        self.row(
            f"CUPTI_ACTIVITY_KIND_{kind}",
            start=round(at * 1e3), end=round((at + lasts) * 1e3), deviceId=0, contextId=1,
            correlationId=correlation, globalPid=pid << 24, **{"streamId": 7, **values},
        )  # fmt: skip

    def range(
        self, text: str | None, at: float, lasts: float, pid: int = 10, tid: int | None = None, **values: Any
    ) -> None:
        times = {"start": round(at * 1e3), "end": round((at + lasts) * 1e3)}
        usual = {"eventType": 59, "globalTid": pid << 24 | (tid or pid), "text": text, "textId": None, "domainId": 0}
        self.row("NVTX_EVENTS", **{**times, **usual, "endGlobalTid": None, **values})

    def os_call(self, name: str, at: float, lasts: float, tid: int = 10, level: int = 0) -> None:
        times = {"start": round(at * 1e3), "end": round((at + lasts) * 1e3)}
        thread = {"globalTid": 10 << 24 | tid, "callchainId": None}
        self.row("OSRT_API", **times, **thread, nameId=self.string(name), nestingLevel=level)

    def stack(self, at: float, *frames: tuple[str, str, int]) -> None:
        """A Python stack, as a mark's payload: function, file and line of each frame, innermost first."""
        payload = struct.pack("<IIIIQQQII", 2, 0, 1, 0, 16, 0, 1, 2, len(frames))
        payload += b"".join(struct.pack("<QQQ", self.string(name), self.string(file), n) for name, file, n in frames)
        thread = 10 << 24 | 10
        self.row("NVTX_EVENTS", start=round(at * 1e3), eventType=34, globalTid=thread, domainId=2, binaryData=payload)

    def item(self, at: float, waits: float = 300, pid: int = 10) -> None:
        """A kernel, and `aten::item`, which copies its result back and waits, `waits` + 50 µs after it began."""
        self.kernel(self.call("cudaLaunchKernel_v7000", at, pid=pid), at + 10, waits, pid)
        self.range("aten::item, op_id = 7", at + 10, waits + 40, pid)
        self.range("aten::_local_scalar_dense, op_id = 8", at + 12, waits + 36, pid)
        copy = self.call("cudaMemcpyAsync_v3020", at + 15, pid=pid)
        self.copy(copy, at + 12 + waits, 2, pid, copyKind=DTOH, srcKind=DEVICE, dstKind=PAGEABLE)
        self.call("cudaStreamSynchronize_v3020", at + 22, waits, pid)

    def save(self, path: Path) -> str:
        """Write the export and return where it is."""
        strings = [{"id": number, "value": text} for text, number in self._strings.items()]
        with sqlite3.connect(path) as base:
            for table, rows in {"StringIds": strings, **self.tables}.items():
                columns = list(dict.fromkeys(name for row in rows for name in row)) or ["id", "value"]
                listed = ", ".join(f"'{name}'" for name in columns)
                base.execute(f"CREATE TABLE {table} ({listed})")
                places = ", ".join("?" * len(columns))
                values = [[row.get(name) for name in columns] for row in rows]
                base.executemany(f"INSERT INTO {table} VALUES ({places})", values)
        base.close()
        return str(path)


def steps(count: int = 4, pid: int = 10, name: str = "step {}") -> Export:
    """A program whose every step reads a value back."""
    export = Export()
    for number in range(count):
        export.range(name.format(number), number * 1000, 900, pid)
        export.item(number * 1000 + 100, pid=pid)
    return export
