"""`syncscan report TRACE -o report.html`: write the analysis of a trace as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan.cli.analysis_options import AnalysisOptions, options
from syncscan.cli.fixes_option import option, with_suggestions
from syncscan.cli.output import deliver, refuse, say, warn
from syncscan.cli.view import options as view_options
from syncscan.cli.view import refuse_unknown, viewed
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.model.view import View


@click.command("report")
@click.argument("trace")
@click.option(
    "-o", "--output", metavar="FILE", default="report.html", show_default=True, help="Output file (- for stdout)."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--open", "opened", is_flag=True, help="Show the report in a browser.")
@option
@view_options
@options
def command(
    trace: str,
    output: str,
    force: bool,
    opened: bool,
    fixes: str | None,
    analysis_options: AnalysisOptions,
    view: View,
) -> None:
    """Write one self-contained HTML file about TRACE: verdict, timeline, findings, projections.

    --top, --min-saves, --select, --ignore and --user-only choose which rows are listed, as in `analyze`.
    """
    from syncscan.report import html

    target = None if output == "-" else output
    refuse_unknown(view)
    if opened and target is None:
        raise UsageError("--open needs a file, but -o - writes to stdout.", "Give a file with -o, or leave out --open.")
    refuse(target, force, trace, *([fixes] if fixes else []))
    analysis = with_suggestions(viewed(analysis_options.analysis_of(trace), view), fixes)
    warn(analysis.warnings)
    text = html.render(analysis)
    deliver(text, target, force, f", {len(text) / 1e6:.1f} MB. Open it in any browser; it needs no network")
    if opened and target:
        _open(Path(target))


def _open(report: Path) -> None:
    """Show the report in the user's browser, or say that there is none."""
    from syncscan.integrations import browser

    if not browser.opens(report.resolve().as_uri()):
        say(f"No browser could be started: open {report} yourself.")
