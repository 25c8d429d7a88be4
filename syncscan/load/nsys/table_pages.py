"""Read the rows of a table from the pages of an SQLite file, as arrays.

SQL takes a microsecond or two for a row, of which an export of 1 GB has thirteen million; this takes a fifth of that.
Only what exports consist of is decoded: rows with their record in one page, and integers where integers are wanted. A
page with anything else is left to SQL (SQLite's "Database File Format", sections 1 and 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from syncscan.model.arrays import Bool, Int64
from syncscan.model.trace import NONE

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
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
_PADDING = 256
"""Bytes after the pages, so that what is read near their end lies within the array."""
_INTEGERS = 7
"""Types below are an integer's: none, of 1, 2, 3, 4, 6 or 8 bytes; then a float (7), and the constants 0 and 1."""
_SIZES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((kind - 12) // 2 for kind in range(12, _WIDE))], np.uint8)
"""Length of a value by its type."""
_SHIFTS = np.array([0, 56, 48, 40, 32, 16, 0], np.int64)
"""Bits of the eight bytes from an integer's begin on that aren't its own, by its type."""
_CONSTANTS = {0: NONE, 8: 0, 9: 1}
_TEXT = 13
"""Least type of a text; even ones are of blobs."""


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

    def select(self, rows: Bool) -> Texts:
        return Texts(self.buffer, self.begins[rows], self.ends[rows])

    def strings(self) -> list[str]:
        """Return the texts with what isn't UTF-8 replaced; empty for one that is missing."""
        places = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        return ["" if at == NONE else self.buffer[at:end].tobytes().decode("utf-8", "replace") for at, end in places]

    def words(self, at: Int64) -> Any:
        """Return the eight bytes from each of these places on, as a big-endian number."""
        return _words(self.buffer, at)


class Rows(NamedTuple):
    numbers: Int64
    """One row per column."""
    texts: Texts | None


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

    def _read(self, pages: Sequence[int]) -> Bytes:
        """Return these pages one after another, those that follow each other in the file by one read."""
        buffer = np.zeros(len(pages) * self._size + _PADDING, np.uint8)
        numbers = np.array(pages, np.int64)
        runs = np.flatnonzero(np.diff(numbers) != 1) + 1
        for first, behind in zip([0, *runs.tolist()], [*runs.tolist(), len(pages)], strict=True):
            self._file.seek((int(numbers[first]) - 1) * self._size)
            self._file.readinto(buffer[first * self._size : behind * self._size].data)
        return buffer

    def rows(self, leaves: Sequence[int], columns: Sequence[int], text: int | None) -> Iterator[Rows | RowIds]:
        """Yield these columns of the rows in these pages, and the text in the column `text`."""
        for first in range(0, len(leaves), PAGES):
            buffer = self._read(leaves[first : first + PAGES])
            block = _PageBlock(buffer, min(PAGES, len(leaves) - first), self._size, self._usable)
            yield from block.rows(columns, text)
            if block.unknown:
                self.damaged = "pages are damaged"


class _PageBlock:
    """Pages with rows, one after another in an array."""

    def __init__(self, buffer: Bytes, pages: int, size: int, usable: int) -> None:
        self._buffer, self._begins, self._usable = buffer, np.arange(pages) * size, usable
        counts = _pairs(buffer, self._begins + 3)
        valid = (buffer[self._begins] == _LEAF) & (_POINTERS[_LEAF] + 2 * counts <= usable)
        self.unknown = not valid.all()
        self._counts = np.where(valid, counts, 0)
        self._page = np.repeat(np.arange(pages), self._counts)
        """The page of each row."""
        behind = np.cumsum(self._counts)
        pointers = 2 * (np.arange(len(self._page)) - (behind - self._counts)[self._page])
        self._of_pages = self._begins[self._page]
        self._cells = self._of_pages + _pairs(buffer, self._of_pages + _POINTERS[_LEAF] + pointers)

    def rows(self, columns: Sequence[int], text: int | None) -> Iterator[Rows | RowIds]:
        records, good = self._records()
        kinds, places, sure = self._values(records, max(*columns, text or 0) + 1)
        good &= sure & (places[-1] <= self._of_pages + self._usable)
        places[:, ~good] = 0
        numbers = np.empty((len(columns), len(records)), np.int64)
        for number, column in enumerate(columns):
            numbers[number] = _integers(self._buffer, places[column], kinds[column])
            good &= (kinds[column] < _INTEGERS) | (kinds[column] == 8) | (kinds[column] == 9)
        texts = None
        if text is not None:
            texts = Texts(self._buffer, np.where(kinds[text] == 0, NONE, places[text]), places[text + 1])
            good &= (kinds[text] == 0) | (kinds[text] >= _TEXT) & (kinds[text] & 1 == 1)
        odd = np.unique(self._page[~good])
        if len(odd):
            good = ~np.isin(self._page, odd)
            numbers, texts = numbers[:, good], texts.select(good) if texts else None
        yield Rows(numbers, texts)
        yield from map(self._row_ids, odd.tolist())

    def _records(self) -> tuple[Int64, Bool]:
        """Return where the record of each row begins, and which of them lie in their page."""
        at, limit = self._cells, self._of_pages + self._usable
        size, at = _number(self._buffer, np.minimum(at, limit))
        for _ in range(9):
            goes_on = self._buffer[at] >= _WIDE
            at = at + 1
            if not goes_on.any():
                break
            at = at - ~goes_on  # those that ended stay at their last byte
        else:
            return at, np.zeros(len(at), np.bool_)
        return at, (size >= 0) & (size <= self._usable - _OVERFLOW) & (at + size <= limit)

    def _values(self, records: Int64, count: int) -> tuple[Any, Int64, Bool]:
        """Return the types of the first values of each record, where each begins and the last ends, and which are sure.

        A type takes one byte, but that of a long text two: of such types a record may have one.
        """
        begins = np.minimum(records, len(self._buffer) - _PADDING)
        heads = np.ascontiguousarray(_windows(self._buffer, count + 2)[begins].T)
        kinds, sure = heads[1 : count + 1], np.bitwise_or.reduce(heads[: count + 1]) < _WIDE
        if not sure.all():
            kinds = self._with_long_texts(heads, kinds.astype(np.int16), sure)
        sure &= heads[0] > count
        places = np.empty((count + 1, len(records)), np.int64)
        np.add(records, heads[0], out=places[0])
        sizes = (
            _SIZES.take(kinds)
            if kinds.dtype == np.uint8
            else np.where(kinds < _WIDE, _SIZES.take(np.minimum(kinds, _WIDE - 1)), (kinds - 12) // 2)
        )
        for column in range(count):
            np.add(places[column], sizes[column], out=places[column + 1])
        return kinds, places, sure

    def _with_long_texts(self, heads: Bytes, kinds: Any, sure: Bool) -> Any:
        """Return the types, with those of two bytes in the rows that have one, which are marked as `sure` in place."""
        wide = heads >= _WIDE
        long = np.flatnonzero(~sure & ~wide[0] & (heads[0] > len(kinds) + 1) & (wide[1:].sum(axis=0) == 1))
        which = wide[1:, long].argmax(axis=0)
        for column in np.unique(which[which < len(kinds)]).tolist():
            rows = long[which == column]
            head = heads[:, rows].astype(np.int16)
            kinds[column, rows] = (head[column + 1] & 127) << 7 | head[column + 2]
            kinds[column + 1 :, rows] = head[column + 3 :]
            sure[rows] = True
        return kinds

    def _row_ids(self, page: int) -> RowIds:
        first = int(self._counts[:page].sum())
        ids = [self._row_id(int(self._cells[at])) for at in (first, first + int(self._counts[page]) - 1)]
        return RowIds(*ids)

    def _row_id(self, cell: int) -> int:
        _, at = _varint(self._buffer, cell)
        return _varint(self._buffer, at)[0]


def _windows(buffer: Bytes, width: int) -> Any:
    """Return a view of as many bytes from each place on."""
    return np.ndarray((len(buffer) - width + 1, width), np.uint8, buffer, 0, (1, 1))


def _words(buffer: Bytes, at: Int64) -> Any:
    return np.ndarray(len(buffer) - 7, ">i8", buffer, 0, (1,))[at].astype(np.int64)  # a view of those at any place


def _pairs(buffer: Bytes, at: Int64) -> Int64:
    pairs: Int64 = buffer[at].astype(np.int64) << 8 | buffer[at + 1]
    return pairs


def _integers(buffer: Bytes, at: Int64, kinds: Any) -> Int64:
    if len(kinds) and kinds[0] in _CONSTANTS and (kinds == kinds[0]).all():  # so are several columns of an export
        return np.full(len(kinds), _CONSTANTS[int(kinds[0])], np.int64)
    numbers: Int64 = _words(buffer, at) >> _SHIFTS.take(kinds, mode="clip")
    for kind, value in _CONSTANTS.items():
        numbers[kinds == kind] = value
    return numbers


def _number(buffer: Bytes, at: Int64) -> tuple[Int64, Int64]:
    """Return the numbers of one or two bytes at these places, NONE for a longer one, and the places behind."""
    first, second = buffer[at].astype(np.int64), buffer[at + 1].astype(np.int64)
    two = first >= _WIDE
    number = np.where(two, (first & 127) << 7 | second, first)
    return np.where(two & (second >= _WIDE), NONE, number), at + 1 + two


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
