"""`syncscan lint PATHS`: warn of likely syncs in source files, by line, without running them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan import features
from syncscan.cli.output import deliver, drawn, refuse, warn
from syncscan.cli.result_options import result_options

if TYPE_CHECKING:
    from syncscan.gate.verdict import Allowance
    from syncscan.lint.warning import LintResult

FORMATS = ("text", "json", "github", "sarif", "csv", "markdown")
FAILED, UNREADABLE = 1, 3


@click.command("lint")
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@click.option("--select", multiple=True, metavar="RULE", help="Show only these rules: ids or globs, comma-separated.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Hide these rules: ids or globs, comma-separated.")
@click.option(
    "--fail-on",
    type=click.Choice(["guess", "medium"]),
    help="Exit 1 on any warning (guess), or only on medium severity.",
)
@result_options(FORMATS)
def command(
    paths: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    form: str,
    output: str | None,
    force: bool,
) -> None:
    """Find where a training program would probably make the host wait for the device, from its source alone.

    PATHS are Python files, notebooks and folders; - is standard input. Nothing is run or imported, so types and devices
    are inferred and a warning can be wrong. Each warning names the line, the rule, and why it runs in every step.
    Comments `# syncscan: allow[RULE] reason`, syncscan.allow and [[tool.syncscan.allow]] are honored.

    The exit code is 0; with --fail-on it is 1 if there is such a warning; it is 3 if a named file can't be read.
    """
    from syncscan.cli.analysis_options import globs, refuse_unknown
    from syncscan.lint import lint
    from syncscan.model.view import View

    refuse(output, force, *paths)
    view = View(select=globs(select), ignore=globs(ignore))
    refuse_unknown(view)
    linted = lint(paths, _allowed(), select=view.select, ignore=view.ignore)
    warn((*linted.unread, *linted.notes))
    deliver(_rendered(linted, form, output), output, force)
    click.get_current_context().exit(_code(linted, fail_on))


def _allowed() -> tuple[Allowance, ...]:
    """Return the exceptions of the project's file, which the gate reads."""
    if "gate" not in features.rooms():
        return ()
    from syncscan import api, gate

    path = gate.found_from(Path.cwd())
    return gate.read_config(path, tuple(rule.id for rule in api.rules())).allowed if path else ()


def _rendered(linted: LintResult, form: str, output: str | None) -> str:
    from syncscan import report
    from syncscan.lint import report as lint_report

    if form == "json":
        return lint_report.render(linted)
    if form in report.ROWS:
        return report.listed([lint_report.flagged_warnings(linted)], form)
    return drawn(lint_report.blocks(linted), form, output)


def _code(linted: LintResult, fail_on: str | None) -> int:
    if linted.unread_named:
        return UNREADABLE
    failing = [g for g in linted.warnings if fail_on == "guess" or (fail_on == "medium" and g.severity == "medium")]
    return FAILED if failing else 0
