"""Render lint warnings as Markdown for a pull request's comment or a job's summary."""

from __future__ import annotations

from collections.abc import Iterator

from syncscan.model.lint_warning import LIMITS, LintResult, LintWarning
from syncscan.report.lint_phrases import beside, verdict
from syncscan.report.markup import cell, escaped

MAX_ROWS = 100
"""Rows in the table: a comment holds 65,536 characters."""


def render(linted: LintResult) -> str:
    """Return the lint warnings as a table in GitHub-flavored Markdown, and each rule's fix once."""
    parts = [f"### {verdict(linted)}"]
    if linted.warnings:
        parts.append("\n".join(_table(linted)))
        fixes = {(g.rule, g.diagnosis.fix): None for g in linted.warnings}
        parts.append("\n".join(f"- {cell(rule)}: {escaped(fix)}" for rule, fix in sorted(fixes)))
    left = len(linted.warnings) - MAX_ROWS
    if left > 0:
        parts.append(f"… and {left} more.")
    parts += [escaped(sentence) for sentence in beside(linted)]
    return "\n\n".join([*parts, f"<sub>{escaped(LIMITS)}</sub>"]) + "\n"


def _table(linted: LintResult) -> Iterator[str]:
    yield "| severity | where | rule | code | why |"
    yield "|---|---|---|---|---|"
    for warning in linted.warnings[:MAX_ROWS]:
        yield _row(warning)


def _row(g: LintWarning) -> str:
    return f"| {g.severity.value} | {cell(g.where)} | {cell(g.rule)} | {cell(g.code)} | {escaped(g.because, 200)} |"
