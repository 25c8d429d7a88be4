"""Read NVTX ranges: those of torch's ops become ops, others the program's scopes.

torch names an op's range `aten::item, seq = 12, op_id = 317177, sizes = [[], [2, 3]]`; older versions and other options
leave parts out (torch/csrc/profiler/util.cpp, `getNvtxStr`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from syncscan.load.columns import Columns, Unlinked
from syncscan.load.nsys.activities import timed
from syncscan.load.nsys.database import WHOLE, Database, Part, text
from syncscan.load.nsys.global_ids import Processes
from syncscan.load.nsys.lookup import Lookup, mixed
from syncscan.load.nsys.table_pages import Bytes, Rows, Texts, windows
from syncscan.load.table import empty, is_empty
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
_SEQ, _ID, _SIZES = (np.uint64(int.from_bytes(begin, "little")) for begin in (b", seq = ", b", op_id ", b", sizes "))
"""The first eight bytes of what follows a name."""
_WIDTHS = (64, 512)
"""Bytes of a text that are searched for its name's end, more only where one is longer."""
_COLUMNS = ["globalTid", "start", "end", "textId", "eventType", "endGlobalTid", "domainId"]
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
        for rows in self._database.blocks(TABLE, _COLUMNS, "text", part, chosen=self._processes.chosen):
            self._add(self._ranges(rows), names, ids_given)
            self._read()

    def _ranges(self, rows: Rows) -> Rows:
        thread, begin, end, _, kind, end_thread, domain = rows.numbers
        if rows.texts and (named := kind == _DOMAIN).any():
            names = rows.texts.select(named).strings()
            stated = zip(domain[named].tolist(), names, strict=True)
            self.libraries |= {number for number, name in stated if name in _LIBRARIES}
        wanted = (end != NONE) & (begin != NONE) & (thread != NONE) & ((end_thread <= 0) | (end_thread == thread))
        wanted &= np.logical_or.reduce([kind == number for number in (NONE, *_RANGES)])  # quicker than `np.isin`
        return rows if wanted.all() else rows.select(np.flatnonzero(wanted))

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
        parsed = names.parsed(rows.texts) if rows.texts else np.repeat([[NONE], [0], [0], [NONE], [0]], count, axis=1)
        number = parsed[0]
        if len(by_id := np.flatnonzero((number == NONE) & (rows.numbers[3] != NONE))):
            parsed[:, by_id] = self._registered.of(rows.numbers[3, by_id])
        thread, begin, end, _, _, _, domain = rows.numbers
        every = [begin, end, thread, domain, *parsed]
        if not (named := number != NONE).all():
            every = [column[named] for column in every]
        ts, dur, thread, domain, number, op, backward, seq, torch = timed(every, self._columns)
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
        self._names: Texts
        self._lookup = Lookup(self._find, 3)

    def parsed(self, texts: Texts) -> Int64:
        """Return what each text names: number, kinds of name, sequence number, whether torch made it."""
        ends, seq, torch = _cut(texts)
        there = texts.begins != NONE
        self._names = Texts(texts.buffer, np.where(there, texts.begins, 0), np.where(there, ends, 0))
        parsed: Int64 = np.concatenate([self._lookup.of(_hashes(self._names)), [seq, torch]])
        return parsed

    def _find(self, _: Int64, first: Int64) -> Any:
        return np.array([_properties(name, self._columns) for name in self._names.select(first).strings()], np.int64).T


def _cut(texts: Texts) -> tuple[Int64, Int64, Bool]:
    """Return where each text's name ends, its sequence number, and whether torch's numbers follow the name."""
    ends, torch, seq = texts.ends.copy(), np.zeros(len(texts.ends), np.bool_), np.full(len(texts.ends), NONE, np.int64)
    for width in _WIDTHS:
        rows = np.flatnonzero(~torch & (texts.begins != NONE))
        marked, marks, words = _first_marks(texts, rows, width)
        ends[marked], torch[marked] = marks, True
        numbered = np.flatnonzero(words == _SEQ)
        seq[marked[numbered]] = _digits(texts.buffer, marks[numbered] + 8, texts.ends[marked[numbered]])
        if not (texts.ends - texts.begins > width).any():
            break
    return ends, seq, torch


def _first_marks(texts: Texts, rows: Int64, width: int) -> tuple[Int64, Int64, Any]:
    """Return which of these texts have a mark within their first bytes, where the first one is, and its eight bytes."""
    begins, ends = texts.begins[rows], texts.ends[rows]
    commas = np.flatnonzero(windows(texts.buffer, begins, width) == ord(","))
    which = commas // width
    places = begins[which] + commas % width
    inside = np.flatnonzero(places < ends[which])
    which, places = which[inside], places[inside]
    words = texts.words(places)
    marks = np.flatnonzero((words == _SEQ) | (words == _ID) | (words == _SIZES))
    which, places, words = which[marks], places[marks], words[marks]
    first = np.flatnonzero(np.diff(which, prepend=NONE))
    return rows[which[first]], places[first], words[first]


def _digits(buffer: Bytes, at: Int64, ends: Int64) -> Int64:
    """Return the numbers that begin at these places, NONE without one."""
    numbers, going = np.zeros(len(at), np.int64), np.ones(len(at), np.bool_)
    for place, digit in enumerate((windows(buffer, at, _MOST_DIGITS) - np.uint8(ord("0"))).T):
        going &= (digit < 10) & (at + place < ends)
        if place == 0:
            numbers[~going] = NONE
        if not going.any():
            break
        numbers = np.where(going, numbers * 10 + digit, numbers)
    return numbers


def _hashes(names: Texts) -> Int64:
    """Return a number for each name."""
    begins, left = names.begins, names.ends - names.begins
    hashes = left.astype(np.uint64)
    rows, of_rows = np.arange(len(left)), hashes
    while len(rows):
        of_rows = mixed(of_rows, names.words(begins) & _OF_LENGTH.take(np.minimum(left, 8)))
        hashes[rows] = of_rows
        more = np.flatnonzero(left > 8)
        rows, begins, left, of_rows = rows[more], begins[more] + 8, left[more] - 8, of_rows[more]
    return hashes.view(np.int64)


_OF_LENGTH = np.array([(1 << 8 * length) - 1 for length in range(9)], np.uint64)
"""The bits of so many of a word's first bytes."""
