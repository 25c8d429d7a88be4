"""What all our SARIF logs are made of: a rule, a file's address, a message; from values of ours to SARIF's objects."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from syncscan.model.finding import Diagnosis, Severity
from syncscan.report.names import shown

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note", Severity.INFO: "none"}
TEXT = 1000
"""Characters of a text that are kept."""

_LINK = re.compile(r"\](?=\()")


def rule(d: Diagnosis) -> dict[str, Any]:
    """A rule as the driver lists it."""
    return {
        "id": d.rule,
        "name": "".join(part.capitalize() for part in re.findall(r"[A-Za-z0-9]+", d.rule)) or "Rule",
        "shortDescription": {"text": text(d.name)},
        "help": {"text": text(f"{d.fix} Fine: {d.when_fine}")},
        "properties": {"tags": ["performance", d.cause.value.lower()]},
    }


def artifact(file: str) -> dict[str, str]:
    """A file as a URI: absolute as it is, relative to the repository's root otherwise."""
    name = shown(file, TEXT)
    if PurePosixPath(name).is_absolute():
        return {"uri": f"file://{quote(name)}"}
    windows = PureWindowsPath(name)
    if windows.drive and windows.is_absolute():
        return {"uri": f"file:///{quote(windows.as_posix(), safe='/:')}"}
    return {"uri": quote(name.removeprefix("./")) or "unknown", "uriBaseId": "%SRCROOT%"}


def text(words: str) -> str:
    """Message text in which nothing becomes a link: SARIF reads `[text](target)` as one."""
    return _LINK.sub("] ", shown(words, TEXT))
