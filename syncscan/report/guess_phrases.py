"""The sentences that every report of guesses has: how many there are, in what, and what they can't know."""

from __future__ import annotations

from syncscan.model.finding import Confidence, Severity
from syncscan.model.guess import Guess, Linted


def verdict(linted: Linted) -> str:
    """How many guesses there are, and in how many files."""
    count, files = len(linted.guesses), len(linted.shown_files)
    if not count:
        return f"No shape of a sync in {_counted(linted.files, 'file')}."
    low = sum(g.severity is Severity.LOW for g in linted.guesses)
    seldom = f", {low} of them where it runs seldom" if low else ""
    return f"{_counted(count, 'guess', 'guesses')} at a sync in {files} of {_counted(linted.files, 'file')}{seldom}."


def beside(linted: Linted) -> list[str]:
    """What is left out, a sentence each."""
    said = []
    if linted.allowed:
        said.append(
            f"{_counted(len(linted.allowed), 'guess', 'guesses')} allowed by comments, blocks or the allow-list."
        )
    if linted.hidden:
        said.append(f"{_counted(linted.hidden, 'guess', 'guesses')} hidden by --select or --ignore.")
    if linted.unread:
        said.append(f"{_counted(len(linted.unread), 'file')} couldn't be read.")
    return said


def doubt(guess: Guess) -> str:
    """Why a guess is unsure beyond what all are; empty where it isn't."""
    return "what it reads may be no tensor" if guess.diagnosis.confidence is Confidence.LOW else ""


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
