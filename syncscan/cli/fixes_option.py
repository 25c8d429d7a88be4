"""The option `--fixes`: changes of `syncscan fix`, shown at the findings that they remove."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from syncscan import features
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis


def option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--fixes", metavar="FILE", help="Show at its finding each change of FILE, from `syncscan fix --format json`."
    )(command)


def with_fixes(analysis: Analysis, fixes: str | None) -> Analysis:
    """Return an analysis with the changes of a file, if there is one, at its findings."""
    if fixes is None:
        return analysis
    offered = features.offered("changes")
    if not offered:
        raise UsageError("--fixes needs syncscan fix, which isn't installed.", "Leave it out.")
    for with_changes in offered:
        analysis = with_changes(analysis, fixes)
    return analysis
