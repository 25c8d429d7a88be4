"""`syncscan prove BEFORE AFTER`: measure whether the second program is faster and computes the same."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan import scratch
from syncscan.cli import running_options
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import deliver, drawn, refuse, say
from syncscan.cli.result_options import result_options
from syncscan.cli.running_options import Finite
from syncscan.errors import UsageError

if TYPE_CHECKING:
    pass

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
@click.option("--apart", is_flag=True, help="Never hold both programs in memory at once.")
@running_options.in_place
@click.option("--trace", metavar="TRACE", help="Trace of BEFORE, to show its projection next to the measurement.")
@click.option(
    "--remove", multiple=True, metavar="SELECTOR", help="With --trace: the syncs that AFTER removes.  [default: all]"
)
@result_options(FORMATS)
@click.argument("before", metavar="BEFORE")
@click.argument("words", metavar="[AFTER] [ARGS]...", nargs=-1, type=click.UNPROCESSED)
@needs(Need("remove", "trace"))
def command(
    revisions: tuple[str, ...],
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

    Exit code 0: a gain, and equal results. 1: not proven. 2: a usage error.
    """
    from syncscan import api
    from syncscan.proof import document
    from syncscan.proof import report as proof_report
    from syncscan.proof.prove import prove
    from syncscan.report import page, step_picture

    refuse(output, force, *((trace,) if trace else ()))
    if not revisions:
        _refuse_command(before)
    before, words = _split_command(before, words) if revisions else (before, words)
    after, arguments = (None, words) if revisions else (words[0] if words else None, words[1:])
    analysis = api.analyze(trace) if trace else None
    projected = analysis.whatif(*(remove or ("all",))) if analysis else None
    if not in_place:
        say(scratch.sentence())
    proof = prove(
        before,
        after,
        arguments=arguments,
        revisions=revisions,
        limit_s=limit,
        matters=matters / 100,
        steps=steps,
        tolerance=tolerance,
        apart=apart,
        in_place=in_place,
        projected=projected,
        progress=say if sys.stderr.isatty() else None,
    )
    picture = step_picture.projected(analysis, projected) if form == "html" and analysis and projected else None
    report = proof_report.blocks(proof, picture)
    if form == "json":
        text = document.render(proof)
    else:
        text = page.drawn(report, "syncscan prove") if form == "html" else drawn(report, form, output)
    deliver(text, output, force)
    sys.exit(0 if proof.proven else 1)


def _refuse_command(before: str) -> None:
    """Refuse a command where a script stands, with how two revisions of its program are compared."""
    if ":" not in before and not Path(before).exists() and shutil.which(before):
        raise UsageError(
            f"{before} is a command, and prove BEFORE AFTER takes two scripts or functions.",
            f"Give two scripts, or compare two revisions of the command's program: syncscan prove --rev REV {before} …",
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
            f"prove times one process, but {typed.launcher} would start {ranks} ranks that depend on each other.",
            "To time one rank, give the script: syncscan prove --rev REV SCRIPT. For all ranks, capture both states"
            f" (syncscan profile --out DIR {typed.launcher} …) and compare them with syncscan diff --fleet DIR1 DIR2.",
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
