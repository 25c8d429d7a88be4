"""`syncscan report TRACE -o report.html`: from a trace to one self-contained HTML file."""

from __future__ import annotations

from typing import Literal

import click

from syncscan.cli import memory
from syncscan.cli import steps as step_options
from syncscan.cli.output import deliver, refuse, warn
from syncscan.cli.progress import reading


@click.command("report")
@click.argument("trace")
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True, help="- for stdout.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--step-ms", type=click.FloatRange(min=0, min_open=True), help="The step's time without the profiler.")
@step_options.options
@memory.option
def command(
    trace: str,
    output: str,
    force: bool,
    step_ms: float | None,
    step_scope: str | None,
    steps: Literal["auto", "none"],
    process: str | None,
    max_memory: int | None,
) -> None:
    """Write one HTML file about TRACE, to open offline or to mail: verdict, timeline, findings, projections."""
    from syncscan import api
    from syncscan.report import html

    target = None if output == "-" else output
    refuse(target, force, trace)
    with reading(trace) as progress:
        analysis = api.analyze(
            trace,
            step_ms=step_ms,
            step_scope=step_scope,
            steps=steps,
            process=process,
            progress=progress,
            max_memory=max_memory,
        )
    warn(analysis.warnings)
    text = html.render(analysis)
    deliver(text, target, force, f", {len(text) / 1e6:.1f} MB. Open it in any browser; it needs no network")
