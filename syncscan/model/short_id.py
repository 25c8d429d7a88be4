"""From what makes two things the same to eight hexadecimal digits that are the same in every run."""

from __future__ import annotations

try:
    from _blake2 import blake2s  # what hashlib has under this name; hashlib loads OpenSSL besides, 2 to 12 ms
except ImportError:
    from hashlib import blake2s


def short_id(what: object) -> str:
    """Eight hexadecimal digits of a value's `repr`."""
    return blake2s(repr(what).encode(), digest_size=4).hexdigest()
