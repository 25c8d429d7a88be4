"""`syncscan prove BEFORE AFTER`: measure whether the second program is faster and computes the same."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from syncscan import scratch
from syncscan.cli import running_options
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import deliver, drawn, refuse, say
from syncscan.cli.result_options import result_options
from syncscan.cli.running_options import Finite
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.projection import Projection
    from syncscan.proof.command_trial import CommandOptions
    from syncscan.proof.outcome import Proof, Side
    from syncscan.proof.running_process import ShellCommand
    from syncscan.report.step_picture import StepPicture

FORMATS = ("text", "json", "markdown", "html")


@click.command(
    "prove",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run two programs alternately: is the change a real gain, and are the results the same?",
)
@click.option(
    "--rev",
    "revisions",
    multiple=True,
    metavar="REV",
    help="Run SCRIPT at this git revision and at a second one; if only one is given, the second is the working tree.",
)
@running_options.limit("5m", "the whole comparison")
@click.option(
    "--matters",
    type=Finite(0),
    default=0.5,
    show_default=True,
    metavar="PERCENT",
    help="Smallest relative difference of the step that matters.",
)
@running_options.steps(10, "Number of seeded steps whose results are compared.")
@click.option(
    "--tolerance",
    type=Finite(0),
    default=1e-5,
    show_default=True,
    help="Allowed relative difference of losses; for parameters, 100 times this, relative to how far they moved.",
)
@click.option("--before", "first", metavar="COMMAND", help="Compare this command, a line of the shell.")
@click.option("--after", "second", metavar="COMMAND", help="With this one.")
@click.option(
    "--metric",
    metavar="WHERE",
    help="The number that commands print: a regular expression with a group, or $.path into JSON."
    "  [default: how long a run takes]",
)
@click.option(
    "--better", type=click.Choice(("lower", "higher")), default="lower", show_default=True, help="With --metric: which."
)
@click.option("--ready", metavar="REGEX", help="The commands are servers, and print this once they answer.")
@click.option("--client", metavar="COMMAND", help="With --ready: run against each server; --metric is its number.")
@click.option("--same-output", is_flag=True, help="Compare what the commands print besides the number.")
@click.option("--apart", is_flag=True, help="Never hold both programs in memory at once.")
@running_options.in_place
@click.option("--trace", metavar="TRACE", help="Trace of BEFORE, to show its projection next to the measurement.")
@click.option(
    "--remove", multiple=True, metavar="SELECTOR", help="With --trace: the syncs that AFTER removes.  [default: all]"
)
@result_options(FORMATS)
@click.argument("before", metavar="[BEFORE]", default="")
@click.argument("words", metavar="[AFTER] [ARGS]...", nargs=-1, type=click.UNPROCESSED)
@needs(
    Need("remove", "trace"),
    Need("better", "metric"),
    Need("ready", "client"),
    Need("client", "ready"),
)
def command(
    revisions: tuple[str, ...],
    first: str | None,
    second: str | None,
    metric: str | None,
    better: str,
    ready: str | None,
    client: str | None,
    same_output: bool,
    limit: float,
    matters: float,
    steps: int,
    tolerance: float,
    apart: bool,
    in_place: bool,
    trace: str | None,
    remove: tuple[str, ...],
    form: str,
    output: str | None,
    force: bool,
    before: str,
    words: tuple[str, ...],
) -> None:
    """Measure whether AFTER is faster than BEFORE, and whether both compute the same results.

    Both are scripts, run with ARGS, or functions (file.py:function). Each call of a function is a step; a function
    that returns a function builds the step. With --rev, one script runs at two git revisions. Both run alternately
    in fresh processes, without a profiler, until the uncertainty is a tenth of the difference or the limit is
    reached. Each process writes into a scratch copy of your files, so that all begin from the same state and none of it
    remains; with --in-place they write into your files. Options come before BEFORE.

    Commands are compared by a number that they print, or by their time: --before COMMAND --after COMMAND, or one at two
    revisions, --rev REV --rev REV --metric WHERE -- COMMAND. Each runs with all its ranks.

    Exit code 0: a gain, and equal results. 1: not proven. 2: a usage error.
    """
    refuse(output, force, *((trace,) if trace else ()))
    shared = {"limit_s": limit, "matters": matters / 100, "apart": apart, "in_place": in_place}
    if first or second or (revisions and (metric or client)):
        if trace or (same_output and client):
            raise UsageError("Commands take no --trace, and servers no --same-output.")
        options = _command_options(metric, better, ready, client, same_output)
        with _commands(first, second, (before, *words), revisions) as commands:
            _deliver(_commands_proven(commands, options, shared), form, output, force)
    if metric or client or same_output:
        raise UsageError(
            "Scripts and functions are compared by their steps, not by what they print.",
            "Give --before COMMAND --after COMMAND, or a command at two revisions behind --.",
        )
    if not before:
        raise UsageError(
            "Two programs are needed.",
            "Give two scripts, two functions, one script with --rev, or --before COMMAND --after COMMAND.",
        )
    analysis, projected = _projected(trace, remove)
    of_steps = {"revisions": revisions, "steps": steps, "tolerance": tolerance, "projected": projected}
    proof = _programs_proven(before, words, {**shared, **of_steps})
    _deliver(proof, form, output, force, _picture(analysis, projected) if form == "html" else None)


def _deliver(proof: Proof, form: str, output: str | None, force: bool, picture: StepPicture | None = None) -> NoReturn:
    """Write the report, and exit with the verdict."""
    from syncscan.proof import outcome
    from syncscan.proof import report as proof_report

    is_json = form == "json"
    text = outcome.render(proof) if is_json else drawn(proof_report.blocks(proof, picture), form, output)
    deliver(text, output, force)
    sys.exit(0 if proof.proven else 1)


def _command_options(
    metric: str | None, better: str, ready: str | None, client: str | None, same_output: bool
) -> CommandOptions:
    from syncscan.proof.command_trial import CommandOptions, Metric

    try:
        re.compile(ready or "")
    except re.error as error:
        raise UsageError(f"'{ready}' is no regular expression: {error}.") from None
    return CommandOptions(
        Metric(metric) if metric else None, better == "higher", ready or "", client or "", same_output
    )


@contextlib.contextmanager
def _commands(
    first: str | None, second: str | None, words: tuple[str, ...], revisions: tuple[str, ...]
) -> Iterator[dict[Side, ShellCommand]]:
    """Yield the two commands: two lines of the shell, or one at two revisions."""
    from syncscan.proof.compared_program import within, worktree
    from syncscan.proof.outcome import Side
    from syncscan.proof.running_process import ShellCommand

    if first or second:
        if not (first and second) or revisions or any(words):
            raise UsageError("--before COMMAND takes --after COMMAND, and no BEFORE, AFTER or --rev besides.")
        yield {Side.BEFORE: ShellCommand(first, first), Side.AFTER: ShellCommand(second, second)}
        return
    if len(revisions) > 2 or not words[0]:
        raise UsageError("--rev compares a command at two revisions.", "--rev REV --rev REV --metric WHERE -- COMMAND")
    line = shlex.join(words)
    commands = [ShellCommand(line, f"{line} in the working tree")] * 2
    with contextlib.ExitStack() as worktrees:
        for n, revision in enumerate(revisions):
            top, place = worktrees.enter_context(worktree(Path.cwd(), revision))
            sources = [str(path) for path in (place, place / "src") if path.is_dir()]
            python_path = os.pathsep.join([*sources, *filter(None, [os.environ.get("PYTHONPATH")])])
            folder = within(Path.cwd(), top, place)
            commands[n] = ShellCommand(line, f"{line} at {revision}", folder, {"PYTHONPATH": python_path})
        yield dict(zip((Side.BEFORE, Side.AFTER), commands, strict=True))


def _commands_proven(commands: dict[Side, ShellCommand], options: CommandOptions, shared: dict[str, Any]) -> Proof:
    from syncscan.proof.prove import prove_commands

    if not shared["in_place"]:
        say(scratch.sentence("each command"))
    return prove_commands(commands, options, **shared, progress=say if sys.stderr.isatty() else None)


def _programs_proven(before: str, words: tuple[str, ...], options: dict[str, Any]) -> Proof:
    """Compare two programs, or one at revisions: a command there as its script."""
    from syncscan.proof.prove import prove

    if options["revisions"]:
        before, arguments = _split_command(before, words)
        after = None
    else:
        _refuse_command(before)
        after, arguments = words[0] if words else None, words[1:]
    if not options["in_place"]:
        say(scratch.sentence())
    return prove(before, after, arguments=arguments, **options, progress=say if sys.stderr.isatty() else None)


def _projected(trace: str | None, remove: tuple[str, ...]) -> tuple[Analysis | None, Projection | None]:
    """Return the analysis of the trace, and what it says of the removed syncs; None without one."""
    from syncscan import api

    analysis = api.analyze(trace) if trace else None
    return analysis, analysis.whatif(*(remove or ("all",)), fix=True) if analysis else None


def _picture(analysis: Analysis | None, projected: Projection | None) -> StepPicture | None:
    from syncscan.report import step_picture

    return step_picture.projected(analysis, projected) if analysis and projected else None


def _refuse_command(before: str) -> None:
    """Refuse a command where a script stands, with how two revisions of its program are compared."""
    if ":" not in before and not Path(before).exists() and shutil.which(before):
        raise UsageError(
            f"{before} is a command, and prove BEFORE AFTER takes two scripts or functions.",
            "Give two scripts; or two commands and a number that they print: --before COMMAND --after COMMAND --metric"
            f" WHERE; or two revisions of the command's program: syncscan prove --rev REV {before} …",
        )


def _split_command(before: str, arguments: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the script of a command, and its arguments; what a launcher starts runs as one rank of one."""
    from syncscan.capture.commands import in_this_process, ranks_wanted, resolved

    if ":" in before or before.endswith(".py"):  # a function in a file, or the script itself
        return before, arguments
    typed = resolved((before, *arguments))
    ranks = ranks_wanted(typed)
    if ranks is not None and ranks > 1:
        raise UsageError(
            f"The steps of one process are timed, but {typed.launcher} would start {ranks} ranks that depend on each"
            " other.",
            "Compare a number that they print: syncscan prove --rev REV --metric WHERE --"
            f" {typed.launcher} …; or give the script, to time one rank.",
        )
    command = in_this_process(typed, "prove")
    if typed.launcher and not command.module:
        say(f"runs {command.target} as a single rank, without {typed.launcher}")
    if command.module:
        raise UsageError(
            "prove runs scripts and functions, not modules.",
            f"Give it a script that runs the module: from {command.target} import main; main().",
        )
    return command.target, command.arguments
