"""From guesses to GitHub's workflow commands, which show them as annotations at their lines."""

from __future__ import annotations

from syncscan.model.finding import Severity
from syncscan.model.guess import LIMITS, Guess, Linted
from syncscan.report.guess_phrases import beside, doubt, verdict
from syncscan.report.phrases import sentences
from syncscan.report.workflow_command import command

KINDS = {Severity.MEDIUM: "warning", Severity.LOW: "notice"}
A_KIND = 10
"""GitHub shows at most so many annotations of a kind from a step; the closing notice is one of them."""


def render(linted: Linted) -> str:
    """One workflow command a guess, 10 of a kind at most, and a closing notice that says what they can't know."""
    room = {"warning": A_KIND, "notice": A_KIND - 1}
    lines = []
    for guess in linted.guesses:
        kind = KINDS[guess.severity]
        if room[kind]:
            room[kind] -= 1
            lines.append(_annotation(kind, guess))
    more = f"{len(linted.guesses) - len(lines)} more have no annotation." if len(lines) < len(linted.guesses) else ""
    lines.append(
        command("notice", {"title": "syncscan lint"}, sentences(verdict(linted), more, *beside(linted), LIMITS))
    )
    return "\n".join(lines) + "\n"


def _annotation(kind: str, guess: Guess) -> str:
    place = {"file": guess.file, "line": str(guess.line), "endLine": str(guess.end_line), "col": str(guess.column)}
    title = f"guess: {guess.diagnosis.title}"
    said = sentences(guess.code, guess.because, doubt(guess), guess.diagnosis.fix, f"Rule {guess.rule}")
    return command(kind, {**place, "title": title}, said)
