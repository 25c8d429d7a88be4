"""From verdicts to GitHub's workflow commands: an error at the line of each sync that isn't allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscan.model.check import Verdict
from syncscan.model.finding import Finding
from syncscan.report.phrases import certainty, chain, line, sentences, what
from syncscan.report.units import duration, times
from syncscan.report.workflow_command import command

A_KIND = 10
"""GitHub shows at most so many annotations of a kind from a step."""


def render(verdicts: Sequence[Verdict], rules_from: str) -> str:
    """An error a limit and one a guilty line, as many as are shown; a notice where all limits are kept."""
    return "\n".join(command for verdict in verdicts for command in _commands(verdict, rules_from)) + "\n"


def _commands(verdict: Verdict, rules_from: str) -> Iterator[str]:
    for violation in verdict.violations[: A_KIND // 2]:
        message = sentences(violation.sentence, f"The limits stand in {rules_from}")
        yield command("error", {"title": "syncscan check"}, message)
    for finding in verdict.guilty[: A_KIND - min(len(verdict.violations), A_KIND // 2)]:
        yield _annotation(finding)
    for note in verdict.said[:A_KIND]:
        yield command("warning", {"title": "syncscan check"}, note)
    if verdict.passed:
        yield command("notice", {"title": "syncscan check"}, f"All limits of {rules_from} are kept.")


def _annotation(finding: Finding) -> str:
    source = finding.where.source
    place = {"file": source.file, "line": str(line(source))} if source else {}
    doubt = "" if source is None or source.exact else f"The line is uncertain: {certainty(source)}"
    measured = f"{what(finding)} waits {duration(finding.wait_us)}, {times(finding.per_step)}"
    message = sentences(measured, f"Chain: {' > '.join(chain(finding))}", finding.diagnosis.fix, doubt)
    return command("error", {**place, "title": finding.diagnosis.title}, message)
