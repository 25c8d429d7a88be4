"""`syncscan report TRACE -o report.html`: write the analysis of a trace as one self-contained HTML file."""

from __future__ import annotations

import click

from syncscan.cli.analysis_options import AnalysisOptions, options
from syncscan.cli.fixes_option import option, with_fixes
from syncscan.cli.output import deliver, refuse, warn_briefly


@click.command("report")
@click.argument("trace")
@click.option(
    "-o", "--output", metavar="FILE", default="report.html", show_default=True, help="Output file (- for stdout)."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@option
@options
def command(
    trace: str,
    output: str,
    force: bool,
    fixes: str | None,
    analysis_options: AnalysisOptions,
) -> None:
    """Write one self-contained HTML file about TRACE: verdict, timeline, findings, projections."""
    from syncscan.report import html

    target = None if output == "-" else output
    refuse(target, force, trace, *([fixes] if fixes else []))
    analysis = with_fixes(analysis_options.analysis_of(trace), fixes)
    warn_briefly(analysis)
    text = html.render(analysis)
    deliver(text, target, force, f", {len(text) / 1e6:.1f} MB. Open it in any browser; it needs no network")
