"""Read NVTX ranges: those of torch's ops become ops, others the program's scopes.

torch names an op's range `aten::item, seq = 12, op_id = 317177, sizes = [[], [2, 3]]`; older versions and other options
leave parts out (torch/csrc/profiler/util.cpp, `getNvtxStr`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from syncscan.load.columns import Columns, Unlinked, empty, is_empty
from syncscan.load.nsys.activities import timed
from syncscan.load.nsys.database import WHOLE, Database, Lookup, Part, text
from syncscan.load.nsys.global_ids import Processes
from syncscan.load.nsys.table_pages import Rows, Texts
from syncscan.model.arrays import Bool, Int64
from syncscan.model.slice_names import is_backward, is_backward_node, is_op, is_wrapper
from syncscan.model.trace import NONE, Category

TABLE = "NVTX_EVENTS"
_RANGES = (59, 60, 70, 71)
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
_SEQ, _ID, _SIZES = (int.from_bytes(begin, "big") for begin in (b", seq = ", b", op_id ", b", sizes "))
"""The first eight bytes of what follows a name."""
_COLUMNS = ["start", "end", "globalTid", "textId", "eventType", "endGlobalTid", "domainId"]
_MOST_DIGITS = 18
_DOMAIN_COLUMN = "external"
"""Column of slices that holds a range's domain until all domains' names are known; exports have no such ids."""


class Ranges:
    """Reads an export's ranges into columns, after each portion calling `read`."""

    def __init__(
        self, database: Database, columns: Columns, processes: Processes, read: Callable[[], None] = lambda: None
    ) -> None:
        self._database, self._columns, self._processes, self._read = database, columns, processes, read
        self._registered = Lookup(self._of_ids, 5)
        self.ops = 0
        self.libraries: set[int] = set()
        """Domains of libraries among those named so far; `without` leaves their ranges out."""

    def read(self, part: Part = WHOLE) -> None:
        present = self._database.columns_of(TABLE)
        if not {"start", "end", "globalTid"} <= present or not present & {"text", "textId"}:
            return
        ids_given = "text" in present and self._database.begins_with(TABLE, "instr(text, ', op_id = ')")
        names = _Names(self._columns)
        for rows in self._database.blocks(TABLE, _COLUMNS, "text", part):
            self._add(self._chosen(rows), names, ids_given)
            self._read()

    def _chosen(self, rows: Rows) -> Rows:
        begin, end, thread, _, kind, end_thread, domain = rows.numbers
        if rows.texts and (named := kind == _DOMAIN).any():
            names = rows.texts.select(named).strings()
            stated = zip(domain[named].tolist(), names, strict=True)
            self.libraries |= {number for number, name in stated if name in _LIBRARIES}
        wanted = self._processes.chosen(thread) & (end != NONE) & (begin != NONE) & (thread != NONE)
        wanted &= ((end_thread <= 0) | (end_thread == thread)) & np.isin(kind, (NONE, *_RANGES))
        if wanted.all():
            return rows
        return Rows(rows.numbers[:, wanted], rows.texts.select(wanted) if rows.texts else None)

    def _of_ids(self, ids: Int64, _: Int64) -> Any:
        """Return what the texts with these ids name: number, kinds of name, sequence number, whether torch made it."""
        texts = self._database.texts(ids.tolist())
        matches = [_NAMED.fullmatch(text(texts.get(number))) for number in ids.tolist()]
        rows = [
            (*_properties(match["name"], self._columns), int(match["seq"] or NONE), match["name"] != match[0])
            for match in matches
            if match
        ]
        return np.array(rows, np.int64).T

    def _add(self, rows: Rows, names: _Names, ids_given: bool) -> None:
        count = rows.numbers.shape[1]
        number, op, backward, seq, torch = parsed = np.zeros((5, count), np.int64)
        number[:], seq[:] = NONE, NONE
        if rows.texts:
            parsed[:] = names.parsed(rows.texts)
        if len(by_id := np.flatnonzero((number == NONE) & (rows.numbers[3] != NONE))):
            parsed[:, by_id] = self._registered.of(rows.numbers[3, by_id])
        named = number != NONE
        ts, dur, thread, domain, number, op, backward, seq, torch = timed(
            np.concatenate([rows.numbers[:3], rows.numbers[6:], parsed])[:, named], self._columns
        )
        # Where torch gave ids to ops, a range without one is the program's, whatever it is called. Autograd functions
        # have any name.
        is_op = (seq != NONE) | (op > 0) & ((torch > 0) | (not ids_given))
        self.ops += int(np.count_nonzero(is_op))
        self._columns.add_columns(
            np.where(is_op, Category.CPU_OP, Category.ANNOTATION).astype(np.int8),
            {
                "ts": ts, "dur": dur, "track": self._processes.threads(thread),
                "name": number.astype(np.int32), "sequence": seq,
                "fwd_thread": np.where(seq == NONE, NONE, backward).astype(np.int32),
                **({_DOMAIN_COLUMN: domain} if (domain > 0).any() else {}),
            },
        )  # fmt: skip


def without(unlinked: Unlinked, libraries: set[int]) -> Unlinked:
    """Return the columns without the ranges of these domains, and without the column of domains."""
    slices = unlinked.slices
    if not is_empty(slices[_DOMAIN_COLUMN]):
        if len(rows := np.flatnonzero(np.isin(slices[_DOMAIN_COLUMN], list(libraries)))):
            slices |= {name: np.delete(column, rows) for name, column in slices.items()}
        slices[_DOMAIN_COLUMN] = empty(len(slices["ts"]), np.int64)
    return unlinked


def _properties(name: str, columns: Columns) -> tuple[int, bool, bool]:
    """Return a name's number, and whether it is an op's and of the backward pass; NONE for one that is left out."""
    if not name or name in _GIL:
        return NONE, False, False
    return columns.name(name), is_op(name) or is_wrapper(name), is_backward(name) or is_backward_node(name)


class _Names:
    """Tells the names in texts, each with an id of its own, of which millions have few names."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._texts: Texts
        self._ends: Int64
        self._lookup = Lookup(self._find, 3)

    def parsed(self, texts: Texts) -> Int64:
        """Return what each text names: number, kinds of name, sequence number, whether torch made it."""
        ends, seq, torch = _cut(texts)
        begins = np.maximum(texts.begins, 0)
        self._texts, self._ends = texts, np.where(texts.begins == NONE, 0, ends)
        of_names = self._lookup.of(_hashes(texts, begins, self._ends))
        parsed: Int64 = np.concatenate([of_names, [seq, torch]])
        return parsed

    def _find(self, _: Int64, first: Int64) -> Any:
        names = Texts(self._texts.buffer, self._texts.begins[first], self._ends[first]).strings()
        return np.array([_properties(name, self._columns) for name in names], np.int64).T


def _cut(texts: Texts) -> tuple[Int64, Int64, Bool]:
    """Return where each text's name ends, its sequence number, and whether torch's numbers follow the name."""
    commas = np.flatnonzero(texts.buffer[:-8] == ord(","))
    words = texts.words(commas)
    marks = np.append(commas[(words == _SEQ) | (words == _ID) | (words == _SIZES)], len(texts.buffer))
    ends = marks[marks.searchsorted(texts.begins)]
    torch = (ends < texts.ends) & (texts.begins != NONE)
    ends = np.where(torch, ends, texts.ends)
    seq = np.full(len(ends), NONE, np.int64)
    numbered = np.flatnonzero(torch)
    numbered = numbered[texts.words(ends[numbered]) == _SEQ]
    seq[numbered] = _digits(texts, ends[numbered] + 8, texts.ends[numbered])
    return ends, seq, torch


def _digits(texts: Texts, at: Int64, ends: Int64) -> Int64:
    """Return the numbers that begin at these places, NONE without one."""
    numbers, going = np.full(len(at), NONE, np.int64), np.ones(len(at), np.bool_)
    for place in range(_MOST_DIGITS):
        digit = texts.buffer[np.minimum(at + place, len(texts.buffer) - 1)] - np.uint8(ord("0"))
        going = going & (digit < 10) & (at + place < ends)
        if not going.any():
            break
        numbers[going] = np.maximum(numbers[going], 0) * 10 + digit[going]
    return numbers


def _hashes(texts: Texts, begins: Int64, ends: Int64) -> Int64:
    """Return a number for each name, which two of a million names share by a chance of one in millions."""
    left, hashes = ends - begins, (ends - begins).astype(np.uint64)
    rows: Any = slice(None)
    while len(left):
        words = texts.words(begins).astype(np.uint64) >> (8 * np.clip(8 - left, 0, 7)).astype(np.uint64)
        mixed = (hashes[rows] ^ np.where(left > 0, words, 0)) * _MULTIPLIER
        hashes[rows] = mixed ^ mixed >> np.uint64(29)
        more = left > 8
        rows = np.flatnonzero(more) if isinstance(rows, slice) else rows[more]
        begins, left = begins[more] + 8, left[more] - 8
    return hashes.view(np.int64)


_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
