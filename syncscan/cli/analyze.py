"""`syncscan analyze TRACE…`: from trace files to a report on stdout."""

from __future__ import annotations

import click


@click.command("analyze")
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the report to a file instead of stdout.")
@click.option("--step-ms", type=float, help="The step's time without the profiler, in ms, as you measured it.")
@click.option("-v", "--verbose", count=True, help="Show everything: evidence, why, fix and when it is fine.")
def command(traces: tuple[str, ...], fmt: str, output: str | None, step_ms: float | None, verbose: int) -> None:
    """Flag the host-device syncs of each TRACE, name them and say what they cost."""
    from syncscan import api
    from syncscan.report import json, text

    for trace in traces:
        analysis = api.analyze(trace)
        click.echo(json.render(analysis) if fmt == "json" else text.render(analysis, verbose=verbose))
