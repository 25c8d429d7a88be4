"""Render lint warnings for a terminal, each with its code; each rule's fix once."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from syncscan.model.finding import Severity
from syncscan.model.lint_warning import LIMITS, LintResult, LintWarning
from syncscan.report.lint_phrases import beside, doubt, verdict
from syncscan.report.printable import printable
from syncscan.report.terminal import written

_COLORS = {Severity.MEDIUM: "yellow", Severity.LOW: "dim"}


def render(linted: LintResult, width: int = 100, color: bool = False) -> str:
    """Return the lint warnings as text.

    Args:
        width: the width of the terminal, in characters.
        color: whether to write colors.
    """
    return written(_parts(linted), width, color)


def _parts(linted: LintResult) -> Iterator[RenderableType]:
    yield Text(verdict(linted), "bold")
    for warning in linted.warnings:
        yield from _warning(warning)
    yield from _fixes(linted)
    for sentence in beside(linted):
        yield Text(sentence, "dim")
    yield Text(LIMITS, "dim")


def _warning(warning: LintWarning) -> Iterator[RenderableType]:
    color = _COLORS.get(warning.severity, "")
    place = Text(printable(warning.where), "bold", overflow="ignore")
    yield place.append(f": {warning.severity.value} ", color).append(f"[{warning.rule}] {warning.diagnosis.title}")
    scope = "".join(f" › {name}" for name in warning.scope)
    unsure = f" ({doubt(warning)})" if doubt(warning) else ""
    lines = f"{warning.code}\n{warning.because}{f' Scope{scope[2:]}.' if scope else ''}{unsure}"
    yield Padding(Text(printable(lines, 600, lines=True)), (0, 0, 0, 4))


def _fixes(linted: LintResult) -> Iterator[RenderableType]:
    fixes = {(g.rule, g.diagnosis.fix): None for g in linted.warnings}
    if fixes:
        yield Text("What to write instead (for details: syncscan explain RULE):", "bold")
    for rule, fix in sorted(fixes):
        yield Padding(Text.assemble((f"{rule}: ", "bold"), fix), (0, 0, 0, 2))
