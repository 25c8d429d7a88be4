"""`syncscan whatif TRACE`: project the step of a trace without the selected syncs."""

from __future__ import annotations

import ntpath
import posixpath

import click

from syncscan.cli.analysis_options import AnalysisOptions, options
from syncscan.cli.output import deliver, drawn, refuse, warn
from syncscan.cli.result_options import result_options

FORMATS = ("text", "json", "html")


@click.command("whatif")
@click.argument("trace", metavar="TRACE")
@click.option("--remove", multiple=True, metavar="SELECTOR", help="Syncs to remove (repeatable).  [default: all]")
@click.option(
    "--launches",
    type=click.Choice(("eager", "compile", "reduce-overhead", "graph")),
    help="Also change how the step launches: torch.compile, with CUDA graphs, or the whole step as one CUDA graph.",
)
@click.option("--fix", is_flag=True, help="Also take out the ops that the fixes replace, where a rule says by what.")
@click.option("--keep-timing", is_flag=True, help="Keep explicit synchronize calls, which timing code needs.")
@result_options(FORMATS)
@options
def command(
    trace: str,
    remove: tuple[str, ...],
    launches: str | None,
    fix: bool,
    keep_timing: bool,
    form: str,
    output: str | None,
    force: bool,
    analysis_options: AnalysisOptions,
) -> None:
    """Replay the step of TRACE without some of its syncs: the real gain, and what bounds the step afterwards.

    SELECTOR is all, scope:GLOB, rule:ID, op:GLOB or id:ID. With --launches, only the syncs that --remove names are
    removed. With --fix, the step is that of the fixes: what is made or read once takes its whole op along.
    """
    from syncscan.report import whatif_report

    refuse(output, force, trace)
    analysis = analysis_options.analysis_of(trace)
    warn(analysis.warnings)
    chosen = remove or (() if launches else ("all",))
    projection = analysis.whatif(*chosen, keep_timing=keep_timing, launches=launches, fix=fix)
    if form == "json":
        text = whatif_report.render(analysis, projection)
    else:
        name = posixpath.basename(ntpath.basename(trace))
        text = drawn(whatif_report.blocks(analysis, projection), form, output, name)
    deliver(text, output, force)
