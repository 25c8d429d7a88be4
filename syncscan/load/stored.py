"""Read the bytes of an open file or pipe as stored, and report what is missing."""

from __future__ import annotations

import io

from syncscan.load.redaction import redacted


class Stored:
    """Uncompressed bytes, and the base of compressed ones."""

    shrinks = 1.0
    """Approximate ratio of the stored size to the text's."""

    def __init__(self, below: io.BufferedReader) -> None:
        self.below, self.bytes_read, self.lost = below, 0, ""

    def into(self, view: memoryview) -> int:
        """Fill the view with text as far as available; return 0 at the end."""
        return self.stored_into(view)

    def stored_into(self, view: memoryview) -> int:
        """Fill the view with stored bytes as far as available; return 0 at the end."""
        try:
            got = self.below.readinto(view)
        except MemoryError:
            raise
        except Exception as e:  # disks, networks and storage clients all fail in their own ways
            self.lost = f"Reading failed after {self.bytes_read:,} bytes ({reason(e)}); the rest is missing."
            return 0
        self.bytes_read += got
        return got

    def stored(self, size: int) -> bytes:
        """Return up to this many stored bytes; empty at the end."""
        part = bytearray(size)
        return bytes(part[: self.stored_into(memoryview(part))])


def reason(error: BaseException) -> str:
    """Return an error's message for use within a sentence."""
    return redacted(str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip("."))
