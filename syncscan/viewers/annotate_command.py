"""`syncscan annotate TRACE`: copy a trace, with its findings drawn on added tracks."""

from __future__ import annotations

from pathlib import Path

import click

from syncscan import files
from syncscan.cli.analysis_options import AnalysisOptions, options
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import refuse, say, warn
from syncscan.cli.progress import reading
from syncscan.cli.streams import refuse_pipe


@click.command("annotate")
@click.argument("trace")
@click.option("-o", "--output", required=True, metavar="OUT", help="Output file, NAME.pt.trace.json.gz.")
@click.option("--around", metavar="FINDING", help="Write only the part around this finding, by id or number (from 1).")
@click.option("--untangle", is_flag=True, help="Move overlapping slices to separate rows, since Perfetto drops them.")
@click.option("--force", is_flag=True, help="Replace OUT if it exists.")
@options
@needs(Need("untangle", "around", never=True))
def command(
    trace: str,
    output: str,
    around: str | None,
    untangle: bool,
    force: bool,
    analysis_options: AnalysisOptions,
) -> None:
    """Write a copy of TRACE with added tracks for findings, steps and idle devices, for Trace View and Perfetto.

    Recorded events stay unchanged and in order, unless --untangle is given. A broken trace is repaired on the way.
    """
    from syncscan.viewers import annotated_copy

    out = Path(output)
    refuse_pipe(trace)
    refuse(output, force, trace)
    analysis = analysis_options.analysis_of(trace)
    with reading(trace, "writing") as progress:
        text = (
            annotated_copy.untangled_copy(analysis, trace, progress)
            if untangle
            else annotated_copy.annotated(analysis, trace, around, progress)
        )
        files.write(out, text, force)
    warn(analysis.warnings)
    if not annotated_copy.read_by_tensorboard(out.name):
        warn([f"TensorBoard won't find {out.name}: it reads NAME.pt.trace.json or NAME.pt.trace.json.gz."])
    count = len(analysis.findings)
    drawn = (
        f"{count} finding{'' if count == 1 else 's'}"
        if count
        else "no findings; added tracks for steps and idle devices"
    )
    say(f"Wrote {output}: {drawn}{' on added tracks' if count else ''}. `syncscan open {output}` shows it.")
