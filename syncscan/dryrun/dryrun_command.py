"""`syncscan dryrun SCRIPT [ARGS]` and `FILE.py:FUNCTION`: find the waits that a program would have on a GPU."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from syncscan import scratch
from syncscan.cli import running_options
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import colors, deliver, refuse, say, warn, width
from syncscan.cli.result_options import result_options
from syncscan.cli.result_options import verbose as verbose_option
from syncscan.cli.running_options import note_misplaced
from syncscan.dryrun.in_view import end_with, in_view
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.dryrun.pretend import Pretended
    from syncscan.dryrun.program_steps import ProgramRounds

FORMATS = ("text", "json", "csv", "markdown", "html", "sarif", "github", "junit")

DEVICE = "Type that the simulated device has for torch; what differs from CUDA is reported."


STOPS = 100
"""Times that a program may catch the exception which ends it, before its process is ended."""


@click.command(
    "dryrun",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a program on a simulated GPU, and list where it would wait.",
)
@running_options.module
@running_options.steps(3, "Steps to run after the first one.")
@result_options(FORMATS, output="Write the report to FILE; NAME.syncscan.json saves it for `check`.")
@verbose_option
@click.option("--fail-on", type=click.Choice(["race", "sync"]), help="Exit 1 on any race, or on any race or sync.")
@click.option("--device", type=click.Choice(["cuda", "xpu", "mps"]), default="cuda", show_default=True, help=DEVICE)
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@needs(Need("verbose", "form", ("text", "markdown")))
def command(
    module: bool,
    steps: int,
    form: str,
    output: str | None,
    force: bool,
    verbose: bool,
    fail_on: str | None,
    device: str,
    script: str,
    args: tuple[str, ...],
) -> None:
    """Run SCRIPT with ARGS on the CPU with a simulated GPU, and report where the host would wait for the device.

    SCRIPT isn't changed and is stopped after some steps; a step ends when an optimizer's step() returns. Without an
    optimizer, it is an iteration of the loop that the program repeats. What it writes goes to scratch copies that are
    gone afterwards; SYNCSCAN_DRY_RUN=1 tells it so, and its standard input is yours.
    FILE.py:FUNCTION calls a function without arguments, once per step. The program's output goes to stderr. Nothing is
    timed, so findings have no costs. Races are also listed: memory that the host or two streams use without
    synchronization. The exit code is 1 if the program fails, or if --fail-on applies.
    """
    from syncscan import load
    from syncscan.dryrun.pretend import pretend_gpu

    note_misplaced(script, args)
    refuse(output, force)
    if output is not None and load.named_as_saved(output):
        form = "saved"
    program = (*(["-m"] if module else []), script, *args)
    options: dict[str, Any] = {}
    if form in ("text", "markdown"):
        options = {"verbose": verbose, "program": program}
    if form == "text":
        options |= {"width": width(), "color": output is None and colors()}

    def work() -> tuple[str, bool]:
        return _dry(script, args, module, steps, pretend_gpu(device), partial(_reported, form, options, fail_on))

    say(scratch.sentence())
    text, failed = in_view(work)
    deliver(text, output, force)
    if failed:
        sys.exit(1)


def _dry(
    script: str,
    args: tuple[str, ...],
    module: bool,
    steps: int,
    pretended: Pretended,
    reported: Callable[[Pretended, bool], tuple[str, bool]],
) -> tuple[str, bool]:
    """Run the program on a simulated GPU, and return the report, and whether the command fails."""

    def give_up() -> None:
        say(f"ended the program's process: {STOPS} times it caught the exception that ends it")
        pretended.conclude()
        end_with(reported(pretended, False))

    with contextlib.redirect_stdout(sys.stderr), pretended:
        failed = _run(script, args, module, steps, pretended, give_up)
    return reported(pretended, failed)


def _reported(
    form: str, options: dict[str, Any], fail_on: str | None, pretended: Pretended, failed: bool
) -> tuple[str, bool]:
    """Return the report, and whether the command fails: its program did, or it has what `fail_on` names."""
    from syncscan import report
    from syncscan.report.phrases import real

    analysis = pretended.analysis
    if form not in ("text", "html", "saved"):  # their part on the run has what lies between the steps
        analysis = replace(analysis, findings=pretended.findings)
    warn(analysis.warnings)
    text = analysis.to_saved() if form == "saved" else report.render(analysis, form, **options)
    waits = fail_on == "sync" and real(pretended.findings)
    return text, bool(failed or (fail_on and analysis.races) or waits)


def _run(
    script: str,
    args: tuple[str, ...],
    module: bool,
    steps: int,
    pretended: Pretended,
    give_up: Callable[[], None],
) -> bool:
    """Run a function, a script or a command to the end of its last step; return whether it failed.

    What a launcher starts in many processes runs as one rank of one. `give_up` ends one that can't be stopped.
    """
    from syncscan.capture.commands import in_this_process, resolved
    from syncscan.capture.main_script import run_function, run_main, script_and_function

    file, function = script_and_function(script)
    counted = _Steps(steps, pretended, give_up)
    if function:
        ended = run_function(file, function, lambda returned: counted.ended())
        if ended.error is not None:
            pretended.failed(ended.error)
        return ended.code != 0
    if not module and script.endswith(".py") and not Path(script).exists():
        raise UsageError(f"{script} doesn't exist.", "Give a script, a command, or FILE.py:FUNCTION.")
    command = resolved((script, *args), module=module)
    if command.launcher:
        program = in_this_process(command, "dryrun")
        say(f"runs {program.target} as a single rank, without {command.launcher}")
        command = program
    with counted.found():
        ended = run_main(command.target, command.arguments, module=command.module)
    failed = ended.code != 0
    if failed:
        pretended.failed()
    return failed


class _Steps:
    """Counts a program's steps, and ends it with the last one; `give_up` ends one that can't be stopped."""

    def __init__(self, steps: int, pretended: Pretended, give_up: Callable[[], None]) -> None:
        self._steps, self._pretended, self._give_up = steps, pretended, give_up
        self._done = self._stops = 0
        self._rounds: ProgramRounds | None = None

    @contextlib.contextmanager
    def found(self) -> Iterator[None]:
        """End a step with every step of the program's optimizer, or round of its loop."""
        from syncscan.capture.optimizer_hook import OptimizerCall, OptimizerHook, StepMarks

        marks = StepMarks()
        rounds = self._rounds = self._pretended.watch_rounds(self.ended)

        def stepped(optimizer: Any, arguments: Any, keywords: Any) -> None:
            if rounds.repeated is None and marks.saw(optimizer, fixed=self._done > 0) is not OptimizerCall.NOTHING:
                rounds.close()
                self.ended()

        hook = OptimizerHook(stepped)
        try:
            yield
        finally:
            hook.remove()
        rounds.close()
        if self._done <= self._steps and rounds.repeated is None:
            self._pretended.count_all()

    def ended(self) -> None:
        self._done += 1
        if self._done <= self._steps:
            self._pretended.step()
        elif self._done == self._steps + 1:
            self._pretended.end_step(then=self._stop)
        else:
            self._stop()

    def _stop(self) -> None:
        from syncscan.capture.main_script import RunComplete

        self._stops += 1
        if self._stops == STOPS:
            self._give_up()
        if self._rounds is not None:
            self._rounds.stop_again(self._stop)
        raise RunComplete
