"""The option `--fixes`: changes of `syncscan fix`, shown at the findings that they remove."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.fix import Fix


def option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--fixes", metavar="FILE", help="Show at its finding each change of FILE, from `syncscan fix --format json`."
    )(command)


def with_fixes(analysis: Analysis, fixes: str | None) -> Analysis:
    """Return an analysis with the changes of a file, if there is one, at its findings."""
    if fixes is None:
        return analysis
    from syncscan.fixing.suggestions import suggest
    from syncscan.report import fix_json

    return suggest(analysis, fix_json.read(fixes))


def with_suggestions(analysis: Analysis, fixes: str | None = None) -> Analysis:
    """Return an analysis with the changes of a file at its findings; without one with what the sources alone show."""
    if fixes is not None:
        return with_fixes(analysis, fixes)
    from syncscan.errors import UsageError
    from syncscan.fixing.suggestions import suggest
    from syncscan.fixing.unrun import fix_source

    proposed: list[Fix] = []
    for path in dict.fromkeys(f.excerpt.path for f in analysis.findings if f.rule == "item" and f.excerpt):
        with contextlib.suppress(UsageError):
            proposed += fix_source(path).fixes if path else ()
    return suggest(analysis, proposed)
