"""`syncscan diff BEFORE AFTER`: compare recordings of two states of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from syncscan.cli.analysis_options import AnalysisOptions, options_of_several
from syncscan.cli.job import fleet_from, is_saved
from syncscan.cli.output import deliver, refuse, say, warn
from syncscan.cli.result_options import result_options
from syncscan.cli.stdout import colors, width
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.diff import Diff
    from syncscan.model.fleet_diff import FleetDiff

FORMATS = ("text", "json", "markdown", "html")
FAILED = 1
"""Exit code where --fail-on is met."""


@click.command("diff")
@click.argument("states", nargs=-1, metavar="BEFORE AFTER")
@click.option("--before", multiple=True, metavar="TRACE", help="Recording of the earlier state (repeatable).")
@click.option("--after", multiple=True, metavar="TRACE", help="Recording of the later state (repeatable).")
@click.option("--fail-on", type=click.Choice(("new",)), help="Exit 1 if a sync is new or waits more often.")
@result_options(FORMATS)
@click.option("--fleet", is_flag=True, help="Treat the traces of each state as the ranks of one job.")
@options_of_several
def command(
    states: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    fail_on: str | None,
    form: str,
    output: str | None,
    force: bool,
    fleet: bool,
    analysis_options: AnalysisOptions,
) -> None:
    """Show which syncs were removed, added or changed from BEFORE to AFTER, where their wait went, and the step's gain.

    Each state is a trace, a saved analysis, or a folder of them; several recordings of a state separate noise from
    change. With --fleet each state is a job, or a saved job, NAME.fleet.json.
    """
    from syncscan import api

    named = _sides(states, before, after)
    if fleet or all(map(is_saved, named)):
        _diff_jobs(named, analysis_options, fail_on, form, output, force)
        return
    sides = [api.find(side) for side in named]
    refuse(output, force, *sides[0], *sides[1])
    analyses = [[analysis_options.analysis_of(path) for path in side] for side in sides]
    for analysis in (*analyses[0], *analyses[1]):
        warn(analysis.warnings)
    comparison = api.diff(*analyses)
    deliver(_render(comparison, analyses, form, output is None), output, force)
    if fail_on and (worse := comparison.worse):
        subject = "1 sync is new or waits" if len(worse) == 1 else f"{len(worse)} syncs are new or wait"
        say(f"{subject} more often than before.")
        click.get_current_context().exit(FAILED)


def _diff_jobs(
    sides: tuple[tuple[str, ...], ...],
    analysis_options: AnalysisOptions,
    fail_on: str | None,
    form: str,
    output: str | None,
    force: bool,
) -> None:
    """Compare two jobs, print the result, and exit 1 if `--fail-on` applies."""
    from syncscan.gate.fleet_comparison import diff_fleets

    if form not in ("text", "json", "markdown"):
        raise UsageError(f"--format {form} doesn't support jobs.", "Use text, json or markdown.")
    refuse(output, force, *sides[0], *sides[1])
    before, after = (fleet_from(side, analysis_options) for side in sides)
    comparison = diff_fleets(before, after)
    deliver(_render_jobs(comparison, form, output is None), output, force)
    if fail_on and (worse := comparison.worse):
        subject = "1 sync is new or waits" if len(worse) == 1 else f"{len(worse)} syncs are new or wait"
        say(f"{subject} more often or on more ranks than before.")
        click.get_current_context().exit(FAILED)


def _render_jobs(diff: FleetDiff, form: str, to_terminal: bool) -> str:
    from syncscan.report import fleet_diff_json, fleet_diff_markdown, fleet_diff_text

    if form == "json":
        return fleet_diff_json.render(diff)
    if form == "markdown":
        return fleet_diff_markdown.render(diff)
    return fleet_diff_text.render(diff, width(), to_terminal and colors())


def _sides(states: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    if len(states) == 2 and not (before or after):
        return (states[0],), (states[1],)
    if not states and before and after:
        return before, after
    raise UsageError("diff needs BEFORE and AFTER, or at least one --before and one --after.")


def _render(diff: Diff, analyses: list[list[Analysis]], form: str, to_terminal: bool) -> str:
    if form == "json":
        from syncscan.report import diff_json

        return diff_json.render(diff)
    if form == "markdown":
        from syncscan.report import diff_markdown

        return diff_markdown.render(diff)
    if form == "html":
        from syncscan.report import diff_html

        return diff_html.render(diff, analyses[0][0], analyses[1][0])
    from syncscan.report import diff_text

    return diff_text.render(diff, width=width(), color=to_terminal and colors())
