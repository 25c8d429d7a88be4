"""Sentences shared by all lint reports: how many warnings, in which files, and what they can't know."""

from __future__ import annotations

from syncscan.model.finding import Confidence, Severity
from syncscan.model.lint_warning import LintResult, LintWarning


def verdict(linted: LintResult) -> str:
    """Return how many lint warnings there are, and in how many files."""
    count, files = len(linted.warnings), len(linted.shown_files)
    if not count:
        return f"No possible syncs in {_count_text(linted.files, 'file')}."
    low = sum(g.severity is Severity.LOW for g in linted.warnings)
    seldom = f"; {low} run{'s' * (low == 1)} rarely" if low else ""
    return f"{_count_text(count, 'possible sync')} in {files} of {_count_text(linted.files, 'file')}{seldom}."


def beside(linted: LintResult) -> list[str]:
    """Return what is left out, one sentence each."""
    sentences = []
    if linted.allowed:
        sentences.append(
            f"{_count_text(len(linted.allowed), 'warning')} allowed by comments, blocks or the allow-list."
        )
    if linted.hidden:
        sentences.append(f"{_count_text(linted.hidden, 'warning')} hidden by --select or --ignore.")
    if linted.unread:
        sentences.append(f"{_count_text(len(linted.unread), 'file')} couldn't be read.")
    return sentences


def doubt(warning: LintWarning) -> str:
    """Return why a lint warning is less certain than others; empty where it isn't."""
    return "it may not read a tensor" if warning.diagnosis.confidence is Confidence.LOW else ""


def _count_text(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
