"""Derive eight hexadecimal digits from a value, the same in every run."""

from __future__ import annotations

try:
    from _blake2 import blake2s  # as in hashlib, which also loads OpenSSL (2 to 12 ms)
except ImportError:
    from hashlib import blake2s


def short_id(what: object) -> str:
    """Return eight hexadecimal digits of a hash of a value's `repr`."""
    return blake2s(repr(what).encode(), digest_size=4).hexdigest()
