"""From an open file or pipe to its bytes as they are stored, as far as they go, and to what is said of the rest."""

from __future__ import annotations

import io

from syncscan.load.redaction import redacted


class Stored:
    """Bytes that aren't packed, and the base of those that are."""

    shrinks = 1.0
    """About how long what is stored is, as a part of the text."""

    def __init__(self, below: io.BufferedReader) -> None:
        self.below, self.bytes_read, self.lost = below, 0, ""
        self.end: int | None = None
        """No stored byte is read from here on."""

    def into(self, view: memoryview) -> int:
        """Fill the view with text as far as it goes; 0 at the end."""
        return self.stored_into(view)

    def stored_into(self, view: memoryview) -> int:
        """The same for the bytes as they are stored."""
        if self.end is not None:
            view = view[: max(0, self.end - self.bytes_read)]
        try:
            got = self.below.readinto(view)
        except MemoryError:
            raise
        except Exception as e:  # disks, networks and the clients of storages fail each in their own way
            self.lost = f"Reading failed after {self.bytes_read:,} bytes ({reason(e)}); what comes after is missing."
            return 0
        self.bytes_read += got
        return got

    def seekable(self) -> bool:
        """Whether text can be left out."""
        return self.below.seekable()

    def skip(self, size: int) -> None:
        """Go so many bytes of text on, or back if it is negative."""
        self.below.seek(size, io.SEEK_CUR)
        self.bytes_read += size

    def stored(self, size: int) -> bytes:
        """Up to this many bytes as they are stored; empty at the end."""
        part = bytearray(size)
        return bytes(part[: self.stored_into(memoryview(part))])


def reason(error: BaseException) -> str:
    """What an error says of itself, to stand in a sentence."""
    return redacted(str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip("."))
