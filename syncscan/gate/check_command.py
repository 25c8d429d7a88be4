"""`syncscan check TRACE…`: compare recordings with a project's limits, and pass or fail in CI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from syncscan.cli.analysis_options import AnalysisOptions, options
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import deliver, drawn, refuse, say, warn
from syncscan.cli.result_options import result_options
from syncscan.cli.running_options import Finite
from syncscan.errors import UsageError
from syncscan.gate.jobs import is_job, job_of
from syncscan.model.finding import Severity

if TYPE_CHECKING:
    from syncscan.gate import Baseline
    from syncscan.gate.verdict import CheckVerdict, Rules
    from syncscan.model.analysis import Analysis
    from syncscan.model.fleet import Fleet

FORMATS = ("text", "github", "sarif", "junit", "json")
FAILED = 1
"""Exit code where a limit isn't kept."""


@click.command("check")
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...")
@click.option("--syncs", type=Finite(min=0), metavar="N", help="Allow at most N syncs per step.")
@click.option("--races", type=Finite(min=0), metavar="N", help="Allow at most N races in a saved dry run.")
@click.option(
    "--limit",
    multiple=True,
    metavar="[SELECTOR,]NAME=NUMBER",
    help="Allow at most this of syncs, wait-ms, recoverable or (of a job) held-up in a step; of some syncs only, as in "
    "scope:loss*,syncs=0 (repeatable).",
)
@click.option("--fleet", is_flag=True, help="Treat the traces as the ranks of one job.")
@click.option("--baseline", metavar="FILE", help="File of known syncs, which don't count toward any limit.")
@click.option("--update-baseline", is_flag=True, help="Write the current syncs to the baseline, and pass.")
@result_options(FORMATS)
@options
@needs(Need("form", "update_baseline", never=True), Need("output", "update_baseline", never=True))
def command(
    traces: tuple[str, ...],
    syncs: float | None,
    races: float | None,
    limit: tuple[str, ...],
    fleet: bool,
    baseline: str | None,
    update_baseline: bool,
    form: str,
    output: str | None,
    force: bool,
    analysis_options: AnalysisOptions,
) -> None:
    """Check each TRACE against the limits in [tool.syncscan] of pyproject.toml, or those given here; exit 1 on failure.

    Without a limit, no sync is allowed, and no race in a dry run that was saved with `syncscan dryrun -o
    NAME.syncscan.json`. Syncs in the allow-list, in the baseline, or on a line with a comment
    `# syncscan: allow[RULE] reason` are exempt.

    With --fleet or a saved job (NAME.fleet.json), the rank with the most syncs or the longest wait counts, and shares
    are relative to the job's step.
    """
    from syncscan import api, gate

    of_job = is_job(fleet, traces)
    rules = _rules(syncs, races, limit, baseline, of_job)
    paths = traces if of_job else tuple(api.find(traces))
    if of_job and analysis_options.process is not None:
        raise UsageError("--process applies to a single trace.", "Leave it out for a job.")
    if update_baseline and not rules.baseline:
        raise UsageError("--update-baseline needs --baseline FILE.", "Add it, or set baseline in [tool.syncscan].")
    refuse(output, force, *paths)
    known = _known(rules.baseline, update_baseline)
    checked = [job_of(paths, analysis_options)] if of_job else _recordings(paths, analysis_options)
    roots = analysis_options.source_root or ()
    verdicts = [gate.check(each, rules, known, source_roots=roots) for each in checked]
    if update_baseline:
        _update(rules.baseline, checked, verdicts)
        return
    source = rules.source or "the default: no syncs"
    verdicts = _together(verdicts)
    deliver(_render(verdicts, source, form, output), output, force)
    if not all(verdict.passed for verdict in verdicts):
        click.get_current_context().exit(FAILED)


def _recordings(paths: Sequence[str], analysis_options: AnalysisOptions) -> list[Analysis | Fleet]:
    analyses = [analysis_options.analysis_of(path) for path in paths]
    for analysis in analyses:
        warn(analysis.warnings)
    return [*analyses]


def _rules(
    syncs: float | None, races: float | None, limits: tuple[str, ...], baseline: str | None, of_job: bool
) -> Rules:
    """Return the limits of the project's file, overridden by the given ones."""
    from syncscan import api, gate
    from syncscan.gate.verdict import Limit, Rules

    ids = (*(rule.id for rule in api.rules()), *gate.RACES)
    path = gate.found_from(Path.cwd())
    rules = gate.read_config(path, ids) if path else Rules(limits=())
    given = [gate.limit_of(text, ids) for text in limits]
    if any(limit.held_up is not None for limit in given) and not of_job:
        raise UsageError("held-up is a limit of jobs.", "Add --fleet, or give a saved job, NAME.fleet.json.")
    if syncs is not None:
        given.insert(0, Limit(syncs=syncs))
    if races is not None:
        rules = replace(rules, races=races, source="the command line")
    if given:
        rules = replace(rules, limits=tuple(given), source="the command line")
    elif not rules.limits and rules.races is None:
        rules = replace(rules, source="")
    return replace(rules, baseline=baseline or rules.baseline)


def _together(verdicts: list[CheckVerdict]) -> list[CheckVerdict]:
    """Keep only the unused and stale entries that match nothing in any of the recordings."""
    everywhere = set.intersection(*(set(v.unused) for v in verdicts))
    met = {text for v in verdicts for text in v.met}
    return [
        replace(
            v,
            unused=tuple(text for text in v.unused if text in everywhere),
            stale=tuple(text for text in v.stale if text not in met),
        )
        for v in verdicts
    ]


def _known(path: str, update: bool) -> Baseline:
    from syncscan import gate

    return gate.read_baseline(Path(path)) if path and not update else gate.EMPTY


def _update(path: str, checked: Sequence[Analysis | Fleet], verdicts: Sequence[CheckVerdict]) -> None:
    """Write the baseline, replacing an existing one, as `--update-baseline` says."""
    from syncscan import files, gate

    target = Path(path)
    if target.exists():
        gate.read_baseline(target)  # no other file is ever replaced
    baseline = gate.baseline_of(checked, verdicts)
    files.write(target, [gate.text_of(baseline).encode()], force=True)
    races = f" and {len(baseline.races)} known race{'s' * (len(baseline.races) != 1)}" if baseline.races else ""
    say(f"Wrote {path}: {len(baseline.known)} known sync{'s' * (len(baseline.known) != 1)}{races}.")


def _render(verdicts: Sequence[CheckVerdict], source: str, form: str, output: str | None) -> str:
    from syncscan import report
    from syncscan.gate import check_report

    if form == "json":
        return check_report.render(verdicts, source)
    if form in report.ROWS:
        within_as = {"github": Severity.LOW, "sarif": Severity.INFO}.get(form)
        return report.listed([check_report.flagged_limits(verdict, source, within_as) for verdict in verdicts], form)
    return drawn(check_report.blocks(verdicts, source), form, output)
