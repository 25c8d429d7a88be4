"""`syncscan diff BEFORE AFTER`: compare recordings of two states of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from syncscan.cli.analysis_options import AnalysisOptions, options_of_several
from syncscan.cli.output import deliver, drawn, refuse, say, warn
from syncscan.cli.result_options import result_options
from syncscan.errors import UsageError
from syncscan.gate.jobs import is_job, job_of

if TYPE_CHECKING:
    from syncscan.gate.differences import Diff
    from syncscan.model.analysis import Analysis
    from syncscan.model.fleet import Fleet

FORMATS = ("text", "json", "markdown", "html")
Sides = tuple[tuple[str, ...], tuple[str, ...]]
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
    from syncscan import gate

    named = _sides(states, before, after)
    of_job = all(is_job(fleet, side) for side in named)
    sides = (_jobs if of_job else _recordings)(named, analysis_options, output, force)
    comparison = gate.diff(*sides)
    deliver(_render(comparison, sides, form, output), output, force)
    if fail_on and (worse := comparison.worse):
        subject = "1 sync is new or waits" if len(worse) == 1 else f"{len(worse)} syncs are new or wait"
        say(f"{subject} {'more often or on more ranks' if of_job else 'more often'} than before.")
        click.get_current_context().exit(FAILED)


def _recordings(
    named: Sides, analysis_options: AnalysisOptions, output: str | None, force: bool
) -> list[list[Analysis]]:
    from syncscan import api

    paths = [api.find(side) for side in named]
    refuse(output, force, *paths[0], *paths[1])
    analyses = [[analysis_options.analysis_of(path) for path in side] for side in paths]
    for analysis in (*analyses[0], *analyses[1]):
        warn(analysis.warnings)
    return analyses


def _jobs(named: Sides, analysis_options: AnalysisOptions, output: str | None, force: bool) -> list[Fleet]:
    refuse(output, force, *named[0], *named[1])
    return [job_of(side, analysis_options) for side in named]


def _sides(states: tuple[str, ...], before: tuple[str, ...], after: tuple[str, ...]) -> Sides:
    if len(states) == 2 and not (before or after):
        return (states[0],), (states[1],)
    if not states and before and after:
        return before, after
    raise UsageError("diff needs BEFORE and AFTER, or at least one --before and one --after.")


def _render(diff: Diff, sides: Sequence[Sequence[Analysis] | Fleet], form: str, output: str | None) -> str:
    from syncscan.gate import diff_report
    from syncscan.report import step_picture

    if form == "json":
        return diff_report.render(diff)
    recordings = [side[0] for side in sides if isinstance(side, Sequence)] if form == "html" else []
    picture = step_picture.measured(*recordings) if recordings else None
    return drawn(diff_report.blocks(diff, picture), form, output)
