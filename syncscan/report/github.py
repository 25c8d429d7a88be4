"""Render flagged lines as GitHub workflow commands, which the runner shows as annotations at their lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscan.model.finding import Severity
from syncscan.report.flagged import FilePosition, Flagged
from syncscan.report.phrases import sentences
from syncscan.report.printable import shown

KINDS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "notice"}
"""Annotation kind by severity. An error annotation doesn't fail the job: use `syncscan check` for that."""
A_KIND = 10
"""Most annotations of a kind that GitHub shows per step (and 50 per job)."""
CLOSING = 4000
"""Characters of the summary annotation."""


def drawn(flagged: Sequence[Flagged]) -> str:
    """Return one workflow command a flagged line above `info`, and a closing notice where something sums up.

    Of each recording at most 10 of a kind; the closing notice says how many were left out.
    """
    return "\n".join(line for one in flagged for line in _commands(one)) + "\n"


def _commands(flagged: Flagged) -> Iterator[str]:
    limits = flagged.limits[: A_KIND // 2]
    yield from (command(KINDS[limit.severity], {"title": limit.title}, limit.message) for limit in limits)
    room = {"error": A_KIND - len(limits), "warning": A_KIND, "notice": A_KIND - 1}
    left_out = 0
    for line in flagged.lines:
        kind = KINDS.get(line.severity, "")
        if room.get(kind):
            room[kind] -= 1
            yield command(kind, {**_properties(line.place), "title": line.title}, line.message)
        else:
            left_out += bool(kind)
    yield from (command("warning", {"title": flagged.tool}, text) for text in flagged.warnings[: room["warning"]])
    if flagged.closing:
        more = f"{left_out} more of them have no annotation: GitHub shows {A_KIND} of a kind" if left_out else ""
        yield command("notice", {"title": flagged.tool}, sentences(*flagged.closing, more), CLOSING)


def _properties(place: FilePosition | None) -> dict[str, str]:
    if place is None:
        return {}
    known = {"file": place.file, "line": place.line, "endLine": place.end_line, "col": place.column}
    return {name: str(value) for name, value in known.items() if name in ("file", "line") or value}


TEXT = 2000
"""Characters of a message."""


def command(kind: str, properties: dict[str, str], message: str, limit: int = TEXT) -> str:
    """Return one command on one line; nothing in it can begin another."""
    pairs = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {pairs}::{_data(message, limit)}"


def _data(text: str, limit: int = TEXT) -> str:
    """Return text escaped as the runner unescapes it (actions/toolkit, core/src/command.ts)."""
    return shown(text, limit).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
