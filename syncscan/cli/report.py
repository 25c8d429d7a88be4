"""`syncscan report TRACE -o report.html`: from a trace to one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from syncscan import files
from syncscan.cli import memory
from syncscan.cli.output import deliver, warn
from syncscan.cli.progress import reading
from syncscan.errors import UsageError


@click.command("report")
@click.argument("trace")
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True, help="- for stdout.")
@click.option("--force", is_flag=True, help="Replace FILE even if it isn't a report.")
@click.option("--step-ms", type=click.FloatRange(min=0, min_open=True), help="The step's time without the profiler.")
@memory.option
def command(trace: str, output: str, force: bool, step_ms: float | None, max_memory: int | None) -> None:
    """Write one HTML file about TRACE, to open offline or to mail: verdict, timeline, findings, projections.

    A report that is already there is written anew; any other file is left alone unless --force is given.
    """
    from syncscan import api
    from syncscan.report import html

    target = None if output == "-" else Path(output)
    if target is not None:
        _check(target, force)
    with reading(trace) as progress:
        analysis = api.analyze(trace, step_ms=step_ms, progress=progress, max_memory=max_memory)
    warn(analysis.warnings)
    text = html.render(analysis)
    if target is None:
        deliver(text, None)
        return
    files.write(target, [text.encode()], force=True)
    click.echo(f"Wrote {output}, {len(text) / 1e6:.1f} MB. Open it in any browser; it needs no network.", err=True)


def _check(target: Path, force: bool) -> None:
    """Refuse a place before anything is read that the report couldn't, or shouldn't, be written to."""
    if target.is_dir() or not target.parent.is_dir():
        raise UsageError(f"{target} is no place for a file.", "Name a file in a folder that exists.")
    if target.exists() and not (force or _is_report(target)):
        raise UsageError(f"{target} exists and is no report.", "Give another name, or --force to replace it.")


def _is_report(path: Path) -> bool:
    """Whether the file is a report that an earlier run wrote."""
    from syncscan.report.html import MARK

    if not path.is_file():
        return False
    with path.open("rb") as f:
        return MARK.encode() in f.read(1000)
