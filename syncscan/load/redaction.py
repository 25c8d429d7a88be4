"""Remove secrets from text with URLs before it is shown, sent or stored."""

from __future__ import annotations

import re

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<rest>[^\s\"'<>]*)")
_HIDDEN = "***"


def redacted(text: str) -> str:
    """Return the text with `user:password@` and the query of each URL hidden, where signatures and tokens are."""
    return _URL.sub(_without_secrets, text) if "://" in text else text


def _without_secrets(url: re.Match[str]) -> str:
    address, _, query = url["rest"].partition("?")
    place, slash, path = address.partition("/")
    user, _, host = place.rpartition("@")
    return f"{url['scheme']}{f'{_HIDDEN}@' if user else ''}{host}{slash}{path}{f'?{_HIDDEN}' if query else ''}"
