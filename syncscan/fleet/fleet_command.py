"""`syncscan fleet FOLDER|GLOB|URL…`: report on a job from the traces of all its ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan.cli.analysis_options import AnalysisOptions, options_of_a_job
from syncscan.cli.needs import Need, given, needs
from syncscan.cli.output import deliver, drawn, refuse
from syncscan.cli.result_options import result_options
from syncscan.errors import UsageError
from syncscan.fleet.job import fleet_from, is_saved
from syncscan.fleet.saved import named_as_fleet

if TYPE_CHECKING:
    from syncscan.model.fleet import Fleet

FORMATS = ("text", "json", "html", "markdown", "csv", "sarif", "github", "junit")


@click.command("fleet")
@click.argument("locations", nargs=-1, required=True, metavar="FOLDER|GLOB|URL...")
@result_options(FORMATS, output="Write the report to FILE. NAME.fleet.json saves the job.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes on this machine.  [default: one per core]")
@click.option("--scheduler", metavar="ADDRESS", help="Read the traces on the workers of this Dask scheduler.")
@options_of_a_job
@needs(Need("jobs", "scheduler", never=True))
def command(
    locations: tuple[str, ...],
    form: str,
    output: str | None,
    force: bool,
    jobs: int | None,
    scheduler: str | None,
    analysis_options: AnalysisOptions,
) -> None:
    """Join the traces of a job's ranks: which rank delays the others and why, and what removing a sync gains the job.

    Each FOLDER, GLOB or URL (anything that fsspec opens, such as s3://bucket/run) names torch.profiler traces, one per
    rank. A trace that can't be read is listed in the report and doesn't stop the rest. A job that was saved with
    -o NAME.fleet.json can be shown again here, and replaces its traces in `check` and `diff`.
    """
    form = _form(form, output)
    if is_saved(locations) and (jobs or scheduler):
        option = "--jobs" if jobs else "--scheduler"
        raise UsageError(f"{option} has no effect on a saved job.", "Leave it out.")
    refuse(output, force, *locations)
    fleet = fleet_from(locations, analysis_options, jobs=jobs, scheduler=scheduler)
    deliver(_render(fleet, form, output), output, force)


def opens(word: str) -> tuple[str, ...]:
    """Return the command for a folder with traces of several ranks."""
    from syncscan.load.folder import ranks_in

    return ("fleet",) if Path(word).is_dir() and len(ranks_in(word)) > 1 else ()


def _form(form: str, output: str | None) -> str:
    """Return the format to write: a file name for saved jobs decides it."""
    if output is None or not named_as_fleet(output):
        return form
    if form != "json" and given(click.get_current_context(), "form"):
        raise UsageError(f"{output} is a file name for saved jobs, which are JSON.", "Leave out --format.")
    return "json"


def _render(fleet: Fleet, form: str, output: str | None) -> str:
    from syncscan import report
    from syncscan.fleet import document
    from syncscan.fleet import report as fleet_report

    if form == "json":
        return document.render(fleet)
    if form in report.ROWS:
        return report.listed([document.flagged_job(fleet)], form)
    return drawn(fleet_report.blocks(fleet), form, output)
