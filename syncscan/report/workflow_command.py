"""Format a GitHub workflow command, which the runner shows as an annotation."""

from __future__ import annotations

from syncscan.report.shown_names import shown

TEXT = 2000
"""Characters of a message."""


def command(kind: str, properties: dict[str, str], message: str, limit: int = TEXT) -> str:
    """Return one command on one line; nothing in it can begin another.

    Args:
        kind: `error`, `warning` or `notice`.
        properties: `file`, `line` and `title`.
        limit: characters of it that are shown at most.
    """
    pairs = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {pairs}::{_data(message, limit)}"


def _data(text: str, limit: int = TEXT) -> str:
    """Return text escaped as the runner unescapes it (actions/toolkit, core/src/command.ts)."""
    return shown(text, limit).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
