"""From text with addresses in it to text without what only their owner may know: it is shown, sent on and stored."""

from __future__ import annotations

import re

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<rest>[^\s\"'<>]*)")
_HIDDEN = "***"


def redacted(text: str) -> str:
    """The text with `user:password@` of each URL in it hidden, and its query, where signatures and tokens are.

    Args:
        text: a path, a URL, a chain of them as fsspec takes it, or a sentence with such in it.
    """
    return _URL.sub(_without_secrets, text) if "://" in text else text


def _without_secrets(url: re.Match[str]) -> str:
    address, _, query = url["rest"].partition("?")
    place, slash, path = address.partition("/")
    user, _, host = place.rpartition("@")
    return f"{url['scheme']}{f'{_HIDDEN}@' if user else ''}{host}{slash}{path}{f'?{_HIDDEN}' if query else ''}"
