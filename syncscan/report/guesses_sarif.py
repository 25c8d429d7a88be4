"""From guesses to SARIF 2.1.0, for code scanning: a result a guess, at its line and column, with its rule."""

from __future__ import annotations

import hashlib
from typing import Any

from syncscan.model.finding import Diagnosis
from syncscan.model.guess import LIMITS, Guess, Linted
from syncscan.model.json_text import indented
from syncscan.report.guess_phrases import doubt
from syncscan.report.names import shown
from syncscan.report.phrases import sentences
from syncscan.report.sarif_parts import LEVELS, SCHEMA, artifact, rule, text
from syncscan.version import __version__


def render(linted: Linted) -> str:
    """The guesses as a SARIF log with one run."""
    rules: dict[str, Diagnosis] = {}
    for guess in linted.guesses:
        rules.setdefault(guess.rule, guess.diagnosis)
    index = {name: k for k, name in enumerate(rules)}
    notes = [{"level": "note", "message": {"text": text(LIMITS)}}]
    notes += [{"level": "warning", "message": {"text": text(said)}} for said in (*linted.unread, *linted.notes)]
    run = {
        "tool": {"driver": {"name": "syncscan", "version": __version__, "rules": [rule(d) for d in rules.values()]}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not linted.unread_named, "toolExecutionNotifications": notes}],
        "results": [_result(guess, index[guess.rule]) for guess in linted.guesses],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return indented(log) + "\n"


def _result(guess: Guess, at: int) -> dict[str, Any]:
    said = sentences(f"Guess: {guess.diagnosis.title}", guess.because, doubt(guess), guess.diagnosis.fix)
    region = {"startLine": guess.line, "startColumn": guess.column, "endLine": guess.end_line}
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact(guess.file), "region": region}}
    if guess.function:
        location["logicalLocations"] = [{"fullyQualifiedName": shown(guess.function), "kind": "function"}]
    known_by = "\0".join((guess.rule, guess.function, guess.code))
    return {
        "ruleId": guess.rule,
        "ruleIndex": at,
        "level": LEVELS[guess.severity],
        "message": {"text": text(said)},
        "locations": [location],
        "partialFingerprints": {
            "syncscanGuess/v1": hashlib.sha256(known_by.encode("utf-8", "replace")).hexdigest()[:16]
        },
        "properties": {
            "guess": True,
            "cause": guess.diagnosis.cause.value,
            "confidence": guess.diagnosis.confidence.value,
        },
    }
