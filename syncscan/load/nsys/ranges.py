"""Read NVTX ranges: those of torch's ops become ops, others the program's scopes.

torch names an op's range `aten::item, seq = 12, op_id = 317177, sizes = [[], [2, 3]]`; older versions and other options
leave parts out (torch/csrc/profiler/util.cpp, `getNvtxStr`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from syncscan.load.columns import Columns
from syncscan.load.nsys.activities import timed
from syncscan.load.nsys.database import Database, text
from syncscan.load.nsys.global_ids import Processes
from syncscan.model.arrays import Bool, Int64
from syncscan.model.slice_names import is_backward, is_backward_node, is_op, is_wrapper
from syncscan.model.trace import NONE, Category

TABLE = "NVTX_EVENTS"
_RANGES = "59, 60, 70, 71"
"""Numbers of push-pop and of start-end ranges in ENUM_NSYS_EVENT_TYPE."""
_DOMAIN = 75
"""Number of the event that names a domain."""
_LIBRARIES = frozenset(
    {"NCCL", "CCCL", "CUB", "cuBLAS", "cuBLASLt", "cuDNN", "cuSPARSE", "cuSOLVER", "cuFFT", "NVSHMEM"}
)
"""Domains of libraries, whose ranges are around their calls, not the program's parts."""
_GIL = frozenset({"Holding GIL", "Waiting for GIL"})
"""Ranges of --trace=python-gil, which lie across others."""
_NAMED = re.compile(
    r"(?P<name>.*?)(, seq = (?P<seq>\d{1,18}))?(, op_id = \d+)?(, sizes = \[.*\])?(, input_op_ids = \[.*\])?",
    re.DOTALL,
)
_SEQ, _ID, _SIZES = ("instr(text, ', seq = ')", "instr(text, ', op_id = ')", "instr(text, ', sizes = [')")
_END = f"CASE WHEN {_SEQ} THEN {_SEQ} WHEN {_ID} THEN {_ID} WHEN {_SIZES} THEN {_SIZES} ELSE 1 << 30 END"
"""SQL for where the name in a text ends, so that millions of texts, each with an id of its own, become few names."""


class Ranges:
    """Reads an export's ranges into columns, after each portion calling `read`."""

    def __init__(
        self, database: Database, columns: Columns, processes: Processes, read: Callable[[], None] = lambda: None
    ) -> None:
        self._database, self._columns, self._processes, self._read = database, columns, processes, read
        self._names: dict[bytes | None, int] = {}
        self._is_op, self._is_backward, self._number = [False], [False], [NONE]
        """Properties of names by their numbers in `_names`, of which the first is no name."""
        self.ops = 0

    def read(self) -> None:
        present = self._database.columns_of(TABLE)
        if not {"start", "end", "globalTid"} <= present or not present & {"text", "textId"}:
            return
        by_id = self._registered(present)
        ids_given = "text" in present and self._database.has(TABLE, _ID)
        for block in self._database.rows(self._statement(present)):
            self._add(block, by_id, ids_given)
            self._read()

    def _statement(self, present: frozenset[str]) -> str:
        columns = ["CAST(start AS INTEGER)", 'CAST("end" AS INTEGER)', "CAST(globalTid AS INTEGER)"]
        columns += ["IFNULL(CAST(textId AS INTEGER), -1)" if "textId" in present else "-1"]
        if "text" in present:
            columns += [
                f"CASE WHEN {_SEQ} THEN CAST(substr(text, {_SEQ} + 8) AS INTEGER) ELSE {NONE} END",
                f"IFNULL({_SEQ} OR {_ID} OR {_SIZES}, 0)", f"CAST(substr(text, 1, ({_END}) - 1) AS BLOB)",
            ]  # fmt: skip
        else:
            columns += [str(NONE), "0", "NULL"]
        conditions = ['"end" IS NOT NULL', "start IS NOT NULL", "globalTid IS NOT NULL"]
        if "eventType" in present:
            conditions.append(f"eventType IN ({_RANGES})")
        if "endGlobalTid" in present:
            conditions.append("IFNULL(endGlobalTid, 0) IN (0, globalTid)")
        if others := self._domains_of_libraries(present):
            conditions.append(f"IFNULL(domainId, 0) NOT IN ({', '.join(map(str, others))})")
        if of_process := self._processes.where(present):
            conditions.append(of_process)
        return f"SELECT {', '.join(columns)} FROM {TABLE} WHERE {' AND '.join(conditions)}"

    def _domains_of_libraries(self, present: frozenset[str]) -> list[int]:
        if not {"domainId", "eventType", "text"} <= present:
            return []
        statement = f"SELECT CAST(domainId AS INTEGER), CAST(text AS BLOB) FROM {TABLE} WHERE eventType = {_DOMAIN}"
        rows = [row for block in self._database.rows(statement) for row in block]
        return sorted({number for number, name in rows if number and text(name) in _LIBRARIES})

    def _registered(self, present: frozenset[str]) -> dict[int, tuple[int, int, bool]]:
        """Return the texts that ranges name by id, as numbers of names, of sequences, and whether torch made them."""
        if "textId" not in present:
            return {}
        rows = self._database.rows(f"SELECT DISTINCT CAST(textId AS INTEGER) FROM {TABLE} WHERE textId IS NOT NULL")
        ids = [number for block in rows for (number,) in block]
        return {number: self._parsed(stored) for number, stored in self._database.texts(ids).items()}

    def _parsed(self, stored: bytes) -> tuple[int, int, bool]:
        stated = text(stored)
        match = _NAMED.fullmatch(stated)
        name, seq = (match["name"], match["seq"]) if match else (stated, None)
        return self._name(name.encode()), int(seq) if seq else NONE, name != stated

    def _add(self, block: Sequence[tuple[Any, ...]], by_id: dict[int, tuple[int, int, bool]], ids_given: bool) -> None:
        begins, ends, threads, text_ids, seqs, by_torch, names = zip(*block, strict=True)
        numbers = [self._name(name) for name in names]
        rows = np.array([begins, ends, threads, numbers, seqs, by_torch], np.int64)
        for place in np.flatnonzero(rows[3] == 0).tolist() if by_id else ():
            rows[3:, place] = by_id.get(text_ids[place], (0, NONE, False))
        ts, dur, thread, number, seq, torch = timed(rows[:, rows[3] > 0], self._columns)
        op = self._are_ops(number, seq, torch.astype(np.bool_), ids_given)
        self.ops += int(np.count_nonzero(op))
        backward = np.array(self._is_backward, np.bool_)[number]
        self._columns.add_columns(
            np.where(op, Category.CPU_OP, Category.ANNOTATION).astype(np.int8),
            {
                "ts": ts, "dur": dur, "track": self._processes.threads(thread),
                "name": np.array(self._number, np.int32)[number], "sequence": seq,
                "fwd_thread": np.where(seq == NONE, NONE, backward).astype(np.int32),
            },
        )  # fmt: skip

    def _are_ops(self, number: Int64, seq: Int64, torch: Bool, ids_given: bool) -> Bool:
        """Return which ranges are ops: those with an op's name, and autograd functions of any name.

        Where torch gave ids to ops, a range without one is the program's, whatever it is called.
        """
        named = np.array(self._is_op, np.bool_)[number]
        ops: Bool = (seq != NONE) | (named & (torch | (not ids_given)))
        return ops

    def _name(self, stored: bytes | None) -> int:
        """Return the number of a name; 0 for none, and for one that is left out."""
        number = self._names.get(stored)
        if number is None:
            name = text(stored)
            number = 0 if not name or name in _GIL else self._add_name(name)
            self._names[stored] = number
        return number

    def _add_name(self, name: str) -> int:
        self._number.append(self._columns.name(name))
        self._is_op.append(is_op(name) or is_wrapper(name))
        self._is_backward.append(is_backward(name) or is_backward_node(name))
        return len(self._number) - 1
