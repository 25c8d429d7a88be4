"""`syncscan analyze TRACE…`: analyze trace files, and write a report to stdout or a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from syncscan.cli.analysis_options import VIEW, AnalysisOptions, options, refuse_unknown, view_options, viewed
from syncscan.cli.fixes_option import option, with_fixes
from syncscan.cli.needs import Need, given, needs
from syncscan.cli.output import colors, deliver, drawn, explain, refuse, say, warn, warn_briefly, width
from syncscan.cli.result_options import result_options
from syncscan.cli.result_options import verbose as verbose_option
from syncscan.errors import TraceError, UsageError

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.stage_clock import StageClock
    from syncscan.model.view import View

FORMATS = ("text", "json", "csv", "markdown", "html", "sarif", "github", "junit", "svg")


@click.command("analyze")
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@result_options(
    FORMATS,
    output="Write the report to FILE, in the format of its name (.html, .json, .md, .csv, .sarif, .xml, .svg). "
    "NAME.syncscan.json saves the whole analysis.",
)
@click.option(
    "--evidence",
    metavar="NAME",
    help="Print one finding or habit as evidence for a pull request, by number, id or rule.",
)
@verbose_option
@click.option("--timings", is_flag=True, help="Print the time of each analysis stage on stderr.")
@option
@view_options
@options
@needs(
    Need("fixes", "form", ("html", "sarif")),
    Need("verbose", "form", ("text", "markdown")),
    Need("verbose", "evidence", never=True),
    Need("evidence", "form", ("text", "markdown")),
    *(Need(option, "evidence", never=True) for option in VIEW),
)
def command(
    traces: tuple[str, ...],
    form: str,
    output: str | None,
    force: bool,
    evidence: str | None,
    verbose: bool,
    fixes: str | None,
    analysis_options: AnalysisOptions,
    view: View,
    timings: bool,
) -> None:
    """Find the host-device syncs in each TRACE, with their causes, their costs, and what removing them would gain.

    With several traces, one that can't be read is skipped and makes the exit code non-zero. Text and Markdown then end
    with a table of all traces, and JSON is a list.

    --top, --min-saves, --select, --ignore and --user-only choose which rows are listed. Step totals always cover
    the whole step. --steps A:B analyzes fewer steps.

    TRACE is a file that torch.profiler wrote (.json, .json.gz, .json.zst), a folder of them, or - for standard input.
    Every command that reads a trace also reads an analysis that was saved with -o NAME.syncscan.json.
    """
    from syncscan import api
    from syncscan.model.stage_clock import StageClock

    form = _form(form, output, evidence)
    paths = api.find(traces)
    several = len(paths) > 1
    if several:
        from syncscan.report import traces as traces_table
    if several and form not in ("text", "json", "csv", "markdown", "github"):
        requested = "A saved analysis" if form == "saved" else f"--format {form}"
        raise UsageError(f"{requested} takes one trace; {len(paths)} were given.")
    refuse_unknown(view)
    refuse(output, force, *paths)
    reports, rows, failed = [], [], 0
    for path in paths:
        try:
            clock = StageClock()
            analysis = with_fixes(viewed(analysis_options.analysis_of(path, clock), view), fixes)
        except TraceError as error:
            if not several:
                raise
            explain(error)
            rows.append(traces_table.unread(path, error.message))
            failed = error.exit_code
            continue
        if form in ("text", "markdown", "html"):
            warn_briefly(analysis)
        else:
            warn(analysis.warnings)
        if several:
            rows.append(traces_table.row(analysis))
        reports.append(_rendered(analysis, form, verbose, evidence, output is None))
        clock.over("report")
        if timings:
            _say_timings(clock, sum(finding.count for finding in analysis.findings))
    if several and form in ("text", "markdown") and not evidence:
        reports.append(drawn(traces_table.blocks(rows), form, output))
    if reports:
        deliver(_join(reports, form) if several else reports[0], output, force)
    if failed:
        click.get_current_context().exit(failed)


def _say_timings(clock: StageClock, waits: int) -> None:
    """Print one line per stage; `start` is Python's own start and the imports of the command."""
    from syncscan.model.stage_clock import cpu_seconds

    start = cpu_seconds() - sum(cpu for _, _, cpu in clock.costs)
    say(f"{'stage':<10} {'seconds':>8} {'CPU s':>8} {'CPU µs a wait':>14}")
    say(f"{'start':<10} {'':>8} {start:8.3f}")
    for stage, seconds, cpu in clock.costs:
        each = f"{cpu / waits * 1e6:14,.1f}" if waits else ""
        say(f"{stage:<10} {seconds:8.3f} {cpu:8.3f} {each}".rstrip())


def _form(form: str, output: str | None, evidence: str | None) -> str:
    """Return the format to write: a file name for saved analyses decides it."""
    from syncscan import load

    if output is None or not load.named_as_saved(output):
        return form
    if evidence or given(click.get_current_context(), "form"):
        what = "--evidence" if evidence else "--format"
        hint = f"Leave out {what}, or choose another file name."
        raise UsageError(f"{output} is a file name for saved analyses.", hint)
    return "saved"


def _rendered(analysis: Analysis, form: str, verbose: bool, evidence: str | None, to_terminal: bool) -> str:
    from syncscan import report

    if evidence:
        from syncscan.report.evidence import of_named

        return of_named(analysis, evidence)
    if form == "saved":
        return analysis.to_saved()
    if form == "markdown":
        return report.render(analysis, form, verbose=verbose)
    if form != "text":
        return report.render(analysis, form)
    color = to_terminal and colors()
    return report.render(analysis, form, verbose=verbose, width=width(), color=color)


def _join(reports: list[str], form: str) -> str:
    """Join reports of several traces: a JSON array, a CSV with one header, or one text after another."""
    if form == "json":
        return "[" + ",\n".join(r.rstrip() for r in reports) + "]\n"
    if form == "csv":
        return reports[0] + "".join(r.partition("\n")[2] for r in reports[1:])
    return "\n".join(reports)
