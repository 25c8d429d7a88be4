"""`syncscan report TRACE -o report.html`: from a trace to one self-contained HTML file."""

from __future__ import annotations

import click

from syncscan.cli.asked import Asked, options
from syncscan.cli.output import deliver, refuse, warn


@click.command("report")
@click.argument("trace")
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True, help="- for stdout.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@options
def command(
    trace: str,
    output: str,
    force: bool,
    asked: Asked,
) -> None:
    """Write one HTML file about TRACE, to open offline or to mail: verdict, timeline, findings, projections."""
    from syncscan.report import html

    target = None if output == "-" else output
    refuse(target, force, trace)
    analysis = asked.analysis_of(trace)
    warn(analysis.warnings)
    text = html.render(analysis)
    deliver(text, target, force, f", {len(text) / 1e6:.1f} MB. Open it in any browser; it needs no network")
