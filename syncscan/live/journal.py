"""Append records to a file of JSON lines that rotates, and go on where the disk is full."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
from pathlib import Path

from syncscan.live.record import ENCODER, Record

MOST_BYTES = 16 << 20
"""Size at which a file is moved aside; windows of 20 s with 20 lines fill it in some two days."""
KEPT_FILES = 9
"""Files that were moved aside and stay; the oldest goes then."""


class _JournalHandler(logging.handlers.RotatingFileHandler):
    """A file that rotates, and that counts what it couldn't write."""

    lost = 0

    def handleError(self, record: logging.LogRecord) -> None:
        """Count a line that couldn't be written, without reporting it to the program's own logging."""
        self.lost += 1


class Journal:
    """A watch's file.

    Args:
        path: of the file; its older parts get `.1`, `.2` … behind the name.
        most_bytes: the size at which it is moved aside.
        files: how many older parts stay.

    Raises:
        OSError: the folder can't be made or written to.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES, files: int = KEPT_FILES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._handler = _JournalHandler(path, maxBytes=most_bytes, backupCount=files, encoding="utf-8")

    @property
    def lost(self) -> int:
        """Return the number of records that couldn't be written."""
        return self._handler.lost

    def write(self, record: Record) -> None:
        """Append a record; what goes wrong is counted in `lost`."""
        text = ENCODER.encode(record).decode()
        self._handler.emit(logging.LogRecord("syncscan", logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        """Close the file; what couldn't be written until now is lost."""
        with contextlib.suppress(OSError):
            self._handler.close()


__all__ = ["Journal"]
