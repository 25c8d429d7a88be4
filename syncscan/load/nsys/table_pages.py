"""Read the rows of a table from the pages of an SQLite file, as arrays.

SQL takes a microsecond or two for a row, of which an export of 1 GB has thirteen million; this takes a fifth of that.
Only what exports consist of is decoded: rows with their record in one page, and integers where integers are wanted. A
page with anything else is left to SQL (SQLite's "Database File Format", sections 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from syncscan.load.nsys.lookup import Lookup, mixed
from syncscan.model.arrays import Bool, Int64, among, distinct
from syncscan.model.trace import NONE

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
UInt16 = np.ndarray[Any, np.dtype[np.uint16]]
PAGES = 256
"""Pages decoded at once: 1 MB, as much as the processor's cache holds."""
_HEADER = 100
_LEAF, _INTERIOR = 13, 5
"""First byte of a table's pages: with rows, and with numbers of further pages."""
_POINTERS = {_LEAF: 8, _INTERIOR: 12}
"""Where in a page the places of its cells are listed."""
_UTF8 = 1
_WIDE = 128
"""Least byte with which a number goes on in the next byte; its other seven bits count."""
_OVERFLOW = 35
"""A record may take the page but so many bytes; a longer one continues in other pages."""
_PADDING = 1 << 10
"""Bytes after the pages, so that what is read near their end lies within the array."""
_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)
"""Length of a value by its type: none, an integer of 1 to 8 bytes, a float, and the constants 0 and 1."""
_SHIFTS = np.array([0, 56, 48, 40, 32, 16, 0, 0, 0, 0], np.int64)
"""Bits of the eight bytes from an integer's begin on that aren't its own, by its type."""
_CONSTANTS = np.array([NONE, 0, 0, 0, 0, 0, 0, 0, 0, 1], np.int64)
_IS_STORED = np.array([0, 1, 1, 1, 1, 1, 1, 0, 0, 0], np.bool_)
"""Types of integers that are stored; the others are constants, but for the float."""
_INTEGERS = frozenset({0, 1, 2, 3, 4, 5, 6, 8, 9})
_TEXT = 13
"""Least type of a text; even ones are of blobs."""
_NOWHERE = 1 << 40
"""End of a record that only SQL can decode; no page holds it."""
Chosen = Callable[[Int64], Bool]
"""Which rows to read, by the first of their columns."""


class Texts(NamedTuple):
    """Texts that lie in an array of bytes; one that is missing begins at NONE."""

    buffer: Bytes
    begins: Int64
    ends: Int64

    @staticmethod
    def of(texts: Sequence[bytes | None]) -> Texts:
        buffer = np.frombuffer(b"".join(text or b"" for text in texts) + bytes(_PADDING), np.uint8)
        ends = np.cumsum([len(text or b"") for text in texts], dtype=np.int64)
        begins = np.append(0, ends[:-1])
        return Texts(buffer, np.where([text is None for text in texts], NONE, begins), ends)

    def select(self, rows: Int64) -> Texts:
        return Texts(self.buffer, self.begins[rows], self.ends[rows])

    def strings(self) -> list[str]:
        """Return the texts with what isn't UTF-8 replaced; empty for one that is missing."""
        places = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        return ["" if at == NONE else self.buffer[at:end].tobytes().decode("utf-8", "replace") for at, end in places]

    def words(self, at: Int64) -> Any:
        """Return the eight bytes from each of these places on, as a little-endian number."""
        return np.ndarray(len(self.buffer) - 7, "<u8", self.buffer, 0, (1,))[at]


class Rows(NamedTuple):
    numbers: Int64
    """One row per column."""
    texts: Texts | None

    def select(self, rows: Int64) -> Rows:
        return Rows(self.numbers.take(rows, axis=1), self.texts.select(rows) if self.texts else None)


class RowIds(NamedTuple):
    """Rows of a page that SQL must read: from the first number on to the last."""

    first: int
    last: int


class TablePages:
    """The pages of a database, without regard to what another program may be writing."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  closed by `close`
        header = self._file.read(_HEADER).ljust(_HEADER, b"\0")
        self._size = int.from_bytes(header[16:18], "big")
        self._size = 1 << 16 if self._size == 1 else self._size
        self._usable = self._size - header[20]
        self._readable = header[56:60] == _UTF8.to_bytes(4, "big") and self._size >= 512
        self._last = Path(path).stat().st_size // max(self._size, 1)
        self.damaged = ""
        self.rows_read = 0

    def close(self) -> None:
        self._file.close()

    def leaves(self, root: int) -> list[int] | None:
        """Return the pages with the rows of the table whose tree has this root, in order; None if only SQL can."""
        if not self._readable or not 1 < root <= self._last or self._read([root])[0] not in _POINTERS:
            return None
        leaves: list[int] = []
        level, left = [root], self._last
        while level:
            further: list[int] = []
            left -= len(level)
            if left < 0:  # a page occurs twice, so it isn't a tree
                self.damaged = "its pages are in disorder"
                break
            for number in level:
                page = self._read([number])[: self._size] if 1 < number <= self._last else np.zeros(1, np.uint8)
                if page[0] == _LEAF:
                    leaves.append(number)
                elif page[0] == _INTERIOR:
                    further += self._children(page)
                else:
                    self.damaged = "pages are missing"
            level = self._only_leaves(further, leaves)
        return leaves

    def _only_leaves(self, pages: list[int], leaves: list[int]) -> list[int]:
        """Add the pages to the leaves if the first is one, as all of a level are; else return them."""
        if pages and 1 < pages[0] <= self._last and self._read([pages[0]])[0] == _LEAF:
            there = [page for page in pages if 1 < page <= self._last]
            leaves += there
            if len(there) < len(pages) or len(leaves) > self._last:
                self.damaged = "pages are missing"
                del leaves[self._last :]
            return []
        return pages

    def _children(self, page: Bytes) -> list[int]:
        begin, count = _POINTERS[_INTERIOR], int.from_bytes(page[3:5].tobytes(), "big")
        cells = np.frombuffer(page[begin : begin + 2 * count].tobytes(), ">u2").astype(np.int64)
        cells = np.append(cells[cells <= self._size - 4], 8)
        children: list[int] = np.frombuffer(page[cells[:, None] + np.arange(4)].tobytes(), ">u4").tolist()
        return children

    def _room(self, pages: int) -> Bytes:
        return np.zeros(pages * self._size + _PADDING, np.uint8)

    def _read(self, pages: Sequence[int], buffer: Bytes | None = None) -> Bytes:
        """Return these pages one after another, those that follow each other in the file by one read."""
        buffer = self._room(len(pages)) if buffer is None else buffer
        numbers = np.array(pages, np.int64)
        runs = np.flatnonzero(np.diff(numbers) != 1) + 1
        for first, behind in zip([0, *runs.tolist()], [*runs.tolist(), len(pages)], strict=True):
            self._file.seek((int(numbers[first]) - 1) * self._size)
            room = buffer[first * self._size : behind * self._size]
            room[self._file.readinto(room.data) :] = 0  # the file is shorter than it says
        return buffer

    def rows(
        self, leaves: Sequence[int], columns: Sequence[int], text: int | None, chosen: Chosen | None
    ) -> Iterator[Rows | RowIds]:
        """Yield these columns of the `chosen` rows in these pages, and the text in the column `text`."""
        layouts = _Layouts(columns, text)
        buffer = self._room(min(PAGES, len(leaves)))  # once, since fresh memory costs as much as what is done in it
        for first in range(0, len(leaves), PAGES):
            some = leaves[first : first + PAGES]
            block = _PageBlock(self._read(some, buffer), len(some), self._size, self._usable)
            self.rows_read += len(block)
            yield from block.rows(layouts, chosen)
            if block.unknown:
                self.damaged = "pages are damaged"


class _Layouts:
    """Where in a record its values lie, by its header; the records of a table have few different ones."""

    def __init__(self, columns: Sequence[int], text: int | None) -> None:
        self._columns, self.text = columns, text
        self._count = max(*columns, text or 0) + 1
        self._header = self._count + 3
        """Bytes of a header that tell the layout: its length, and the types, of which a text's takes up to three."""
        self._words = (self._header + 7) // 8
        self._lookup = Lookup(self._find, 3 + 2 * len(columns))
        self._buffer: Bytes
        self._records: Int64

    def of(self, buffer: Bytes, records: Int64) -> tuple[Int64, Int64]:
        """Return the number of each record's layout; and the layouts, a column each, counted from a record's begin.

        Their rows are the end of all values, the text's begin and end, the columns' begins, and the columns' types.
        """
        self._buffer, self._records = buffer, records
        words = windows(buffer, records, 8 * self._words).view("<u8")
        words[:, -1] &= np.uint64((1 << 8 * (self._header - 8 * (self._words - 1))) - 1)
        hashes = mixed(np.uint64(0), words[:, 0])
        for word in words[:, 1:].T:
            hashes = mixed(hashes, word)
        return self._lookup.places(hashes.view(np.int64)), self._lookup.numbers

    def _find(self, _: Int64, first: Int64) -> Any:
        return np.array([self._layout(record) for record in self._records[first].tolist()], np.int64).T

    def _layout(self, record: int) -> list[int]:
        kinds, places = self._types(record)
        decodable = len(kinds) == self._count and 0 < places[-1] < _NOWHERE
        if not decodable or not _INTEGERS.issuperset(kinds[column] for column in self._columns):
            return self._unknown
        of_text = [NONE, NONE]
        if self.text is not None and (kind := kinds[self.text]):
            if kind < _TEXT or kind % 2 == 0:
                return self._unknown
            of_text = places[self.text : self.text + 2]
        return [places[-1], *of_text, *(places[c] for c in self._columns), *(kinds[c] for c in self._columns)]

    @property
    def _unknown(self) -> list[int]:
        return [_NOWHERE, *[0] * (2 + 2 * len(self._columns))]

    def _types(self, record: int) -> tuple[list[int], list[int]]:
        """Return the types of a record's values, as far as they are wanted, and where each begins and the last ends."""
        size, at = _varint(self._buffer, record)
        kinds, places, behind = list[int](), [size], record + min(size, self._header)
        while len(kinds) < self._count and at < behind:
            kind, at = _varint(self._buffer, at)
            if at <= behind:
                kinds.append(kind)
                places.append(places[-1] + (_SIZES[kind] if 0 <= kind < len(_SIZES) else (kind - 12) // 2))
        return kinds, places


class _PageBlock:
    """Pages with rows, one after another in an array."""

    def __init__(self, buffer: Bytes, pages: int, size: int, usable: int) -> None:
        self._buffer, self._usable = buffer, usable
        begins = np.arange(pages) * size
        counts = _pairs(buffer, begins + 3).astype(np.int64)
        valid = (buffer[begins] == _LEAF) & (_POINTERS[_LEAF] + 2 * counts <= usable)
        self.unknown = not valid.all()
        self._counts = np.where(valid, counts, 0)
        self._page = np.repeat(np.arange(pages), self._counts)
        """The page of each row."""
        self._ends = (begins + usable)[self._page]
        """Where that page ends."""
        first, most = _POINTERS[_LEAF] // 2, int(self._counts.max())
        pointers = buffer[: pages * size].view(">u2").reshape(pages, -1)[:, first : first + most]
        cells = np.minimum(pointers + begins[:, None], begins[:, None] + usable)
        self._cells: Int64 = cells[np.arange(most) < self._counts[:, None]]

    def __len__(self) -> int:
        return len(self._cells)

    def rows(self, layouts: _Layouts, chosen: Chosen | None) -> Iterator[Rows | RowIds]:
        records, sizes = self._records()
        which, every = layouts.of(self._buffer, records)
        rows, odd = np.flatnonzero(every[0].take(which) <= sizes), np.zeros(0, np.int64)
        if len(rows) < len(records):
            odd = distinct(np.delete(self._page, rows))
            rows = np.flatnonzero(~among(self._page, odd))
        records, which = records[rows], which[rows]
        self._used = np.flatnonzero(np.bincount(which))
        first, *further = zip(*np.split(every[3:], 2), strict=True)
        if chosen is not None:
            rows = np.flatnonzero(chosen(self._integers(records, which, *first)))
            records, which = records[rows], which[rows]
        numbers = np.empty((1 + len(further), len(rows)), np.int64)
        for row, column in enumerate((first, *further)):
            numbers[row] = self._integers(records, which, *column)
        texts = None
        if layouts.text is not None:
            begin, end = every[1:3, which]
            texts = Texts(self._buffer, np.where(begin == NONE, NONE, records + begin), records + end)
        yield Rows(numbers, texts)
        yield from map(self._row_ids, odd.tolist())

    def _records(self) -> tuple[Int64, Int64]:
        """Return where each row's record begins, and its length; NONE for one that isn't whole in its page."""
        pairs = _pairs(self._buffer, self._cells)
        two, more = pairs >= _WIDE << 8, pairs & _WIDE > 0
        sizes = np.where(two, (pairs >> 8 & 127) << 7 | pairs & 127, pairs >> 8)
        records = self._cells + 1 + two + self._lengths_of_ids()[self._page]
        whole = (sizes <= self._usable - _OVERFLOW) & (records + sizes <= self._ends) & ~(two & more)
        return np.minimum(records, len(self._buffer) - _PADDING), np.where(whole, sizes.astype(np.int64), NONE)

    def _lengths_of_ids(self) -> Int64:
        """Return how many bytes each page's row ids take; as many as the page where these differ.

        They ascend, so that all take as many as the first and the last.
        """
        lengths, some = np.full(len(self._counts), self._usable), np.flatnonzero(self._counts)
        behind = np.cumsum(self._counts)[some]
        at = self._cells[[behind - self._counts[some], behind - 1]]
        at = at + 1 + (self._buffer[at] >= _WIDE)
        first, last = 1 + np.logical_and.accumulate(windows(self._buffer, at, 8) >= _WIDE, axis=2).sum(axis=2)
        lengths[some] = np.where((first == last) & (first < 9), first, self._usable)
        return lengths

    def _integers(self, records: Int64, which: Int64, begins: Int64, kinds: Int64) -> Int64:
        """Return the numbers in a column of these records, by its begin and type in each layout."""
        stored, constants = _IS_STORED.take(kinds), _CONSTANTS.take(kinds)
        of_used = stored[self._used]
        if not of_used.any():  # so are several columns of an export
            return constants.take(which)
        words = np.ndarray(len(self._buffer) - 7, ">i8", self._buffer, 0, (1,))[records + begins.take(which)]
        numbers: Int64 = words.astype(np.int64) >> _SHIFTS.take(kinds).take(which)
        return numbers if of_used.all() else np.where(stored.take(which), numbers, constants.take(which))

    def _row_ids(self, page: int) -> RowIds:
        first = int(self._counts[:page].sum())
        ids = [self._row_id(int(self._cells[at])) for at in (first, first + int(self._counts[page]) - 1)]
        return RowIds(*ids)

    def _row_id(self, cell: int) -> int:
        _, at = _varint(self._buffer, cell)
        return _varint(self._buffer, at)[0]


def windows(buffer: Bytes, at: Int64, width: int) -> Bytes:
    """Return copies of as many bytes from each of these places on."""
    every = np.ndarray(len(buffer) - width + 1, f"V{width}", buffer, 0, (1,))
    copies: Bytes = every[at].view(np.uint8).reshape(*at.shape, width)
    return copies


def _pairs(buffer: Bytes, at: Int64) -> UInt16:
    """Return the two bytes at each of these places, as a big-endian number."""
    pairs: UInt16 = np.ndarray(len(buffer) - 1, ">u2", buffer, 0, (1,))[at].astype(np.uint16)
    return pairs


def _varint(buffer: Bytes, at: int) -> tuple[int, int]:
    """Return the number of up to nine bytes at a place, and the place behind it."""
    number = 0
    for place in range(at, at + 8):
        byte = int(buffer[place])
        number = number << 7 | byte & 127
        if byte < _WIDE:
            return number, place + 1
    number = number << 8 | int(buffer[at + 8])
    return number - (1 << 64) if number >> 63 else number, at + 9
