"""Render flagged lines as SARIF 2.1.0 for code scanning: a result per line, with its rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from syncscan.model.finding import Severity
from syncscan.model.fix import SourceEdit
from syncscan.model.json_text import indented
from syncscan.report.flagged import FilePosition, Flagged, FlaggedLine
from syncscan.report.printable import shown
from syncscan.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note", Severity.INFO: "none"}
TEXT = 1000
"""Characters of a text that are kept."""

_LINK = re.compile(r"\](?=\()")


def drawn(flagged: Sequence[Flagged]) -> str:
    """Return the flagged lines, each with a diagnosis, as a SARIF log with a run per recording.

    A line without a place is located at the trace: code scanning refuses results that are nowhere.
    """
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": list(map(_run, flagged))}
    return indented(log) + "\n"


def _run(flagged: Flagged) -> dict[str, Any]:
    rules = {line.rule: _rule(line) for line in reversed(flagged.lines)}
    rules = {line.rule: rules[line.rule] for line in flagged.lines}  # each as its first line has it
    driver = {"name": "syncscan", "version": __version__, "rules": [*rules.values()]}
    index = {rule: k for k, rule in enumerate(rules)}
    notes = [{"level": level, "message": {"text": _text(sentence)}} for level, sentence in flagged.notifications]
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not flagged.failed, "toolExecutionNotifications": notes}],
        "results": [_result(line, index[line.rule], flagged.path) for line in flagged.lines],
    }
    return {**run, "properties": _texts(flagged.facts)} if flagged.facts else run


def _texts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts with safe texts at every depth."""
    return {
        key: _texts(value) if isinstance(value, Mapping) else _text(value) if isinstance(value, str) else value
        for key, value in facts.items()
    }


def _rule(line: FlaggedLine) -> dict[str, Any]:
    helps = {"help": {"text": _text(line.rule_help)}} if line.rule_help else {}
    return {
        "id": line.rule,
        "name": _name(line.rule),
        "shortDescription": {"text": _text(line.rule_name or line.title)},
        **helps,
        "properties": {"tags": list(line.tags)},
    }


def _name(rule: str) -> str:
    return "".join(part.capitalize() for part in re.findall(r"[A-Za-z0-9]+", rule)) or "Rule"


def _result(line: FlaggedLine, rule: int, path: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": line.rule,
        "ruleIndex": rule,
        "level": LEVELS[line.severity],
        "kind": "informational" if line.severity is Severity.INFO else "fail",
        "message": {"text": _text(line.summary)},
        "locations": [_location(line, path)],
        "partialFingerprints": line.fingerprints,
        "properties": line.figures,
    }
    if line.called_from:
        result["relatedLocations"] = [
            {
                "id": 1,
                "message": {"text": "waits here, in the library"},
                "physicalLocation": _physical(line.called_from),
            }
        ]
    if line.changes and line.place:
        result["fixes"] = [_fix(line.place.file, words, changes) for words, changes in line.changes]
    return result


def _fix(file: str, words: str, changes: Sequence[SourceEdit]) -> dict[str, Any]:
    """Return a fix as SARIF has it; its columns count characters, as the run's `columnKind` says."""
    replacements = [
        {
            "deletedRegion": {
                "startLine": change.line,
                "startColumn": change.column,
                "endLine": change.end_line,
                "endColumn": change.end_column,
            },
            "insertedContent": {"text": change.text},
        }
        for change in changes
    ]
    change = {"artifactLocation": _artifact(file), "replacements": replacements}
    return {"description": {"text": _text(words)}, "artifactChanges": [change]}


def _location(line: FlaggedLine, path: str) -> dict[str, Any]:
    nowhere = {"artifactLocation": _artifact(PurePath(path).name)}
    location: dict[str, Any] = {"physicalLocation": _physical(line.place) if line.place else nowhere}
    if line.inside:
        name, kind = line.inside
        location["logicalLocations"] = [{"fullyQualifiedName": shown(name, TEXT), "kind": kind}]
    return location


def _physical(place: FilePosition) -> dict[str, Any]:
    region = {"startLine": place.line, "startColumn": place.column, "endLine": place.end_line}
    known = {name: value for name, value in region.items() if name == "startLine" or value}
    return {"artifactLocation": _artifact(place.file), "region": known}


def _artifact(file: str) -> dict[str, str]:
    """Return a file as a URI: absolute paths as they are, others relative to the repository's root."""
    name = shown(file, TEXT)
    if PurePosixPath(name).is_absolute():
        return {"uri": f"file://{quote(name)}"}
    windows = PureWindowsPath(name)
    if windows.drive and windows.is_absolute():
        return {"uri": f"file:///{quote(windows.as_posix(), safe='/:')}"}
    return {"uri": quote(name.removeprefix("./")) or "unknown", "uriBaseId": "%SRCROOT%"}


def _text(words: str) -> str:
    """Return message text without links: SARIF reads `[text](target)` as one."""
    return _LINK.sub("] ", shown(words, TEXT))
