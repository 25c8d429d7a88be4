"""From guesses to the JSON that other programs rely on (schema `syncscan.lint/1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscan.model.guess import LIMITS, Guess, Linted
from syncscan.model.json_text import indented
from syncscan.version import __version__

if TYPE_CHECKING:
    from syncscan.model.documents import GuessDocument, LintDocument

SCHEMA = "syncscan.lint/1"


def render(linted: Linted) -> str:
    """The guesses as indented JSON, with the keys of findings as far as a guess has them."""
    document: LintDocument = {
        "schema": SCHEMA,
        "syncscan": __version__,
        "limits": LIMITS,
        "files": linted.files,
        "guesses": [guess(g) for g in linted.guesses],
        "allowed": [{**guess(a.guess), "by": a.by, "reason": a.reason} for a in linted.allowed],
        "hidden": linted.hidden,
        "notes": list(linted.notes),
        "unread": list(linted.unread),
    }
    return indented(document) + "\n"


def guess(g: Guess) -> GuessDocument:
    """One guess as plain values."""
    d = g.diagnosis
    return {
        "rule": d.rule,
        "name": d.name,
        "cause": d.cause.value,
        "severity": g.severity.value,
        "confidence": d.confidence.value,
        "scope": list(g.scope),
        "source": {
            "file": g.file,
            "line": g.line,
            "column": g.column,
            "end_line": g.end_line,
            "cell": g.cell,
            "function": g.function,
            "code": g.code,
        },
        "place": g.place,
        "because": g.because,
        "title": d.title,
        "why": d.why,
        "fix": d.fix,
        "when_fine": d.when_fine,
    }
