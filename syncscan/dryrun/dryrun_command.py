"""`syncscan dryrun SCRIPT [ARGS]` and `FILE.py:FUNCTION`: find the waits that a program would have on a GPU."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from syncscan.model.analysis import Analysis

FORMATS = ("text", "json", "csv", "markdown", "html", "sarif", "github", "junit")

DEVICE = "Type that the simulated device has for torch; what differs from CUDA is reported."


STOPS = 100
"""Times that a program may catch the exception which ends it, before its process is ended."""


class _DryRunComplete(BaseException):
    """Unwinds the program after its last step; a BaseException, so that `except Exception` lets it through."""


class _Reported(NamedTuple):
    """A report, and whether its program failed, races and waits."""

    text: str
    failed: bool
    races: bool
    syncs: bool


@click.command(
    "dryrun",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a program on a simulated GPU, and list where it would wait.",
)
@running_options.module
@running_options.steps(3, "Steps to run after the first one.")
@result_options(FORMATS, output="Write the report to FILE; NAME.syncscan.json saves it for `check`.")
@click.option("--like", metavar="TRACE", help="Take costs from this recording of the same code, at any input size.")
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
    like: str | None,
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
    timed, so findings have no costs unless --like names a recording (a trace or a saved analysis): its figures are used
    unscaled, with a note if its sizes differ. Races are also listed: memory that the host or two streams use without
    synchronization. The exit code is 1 if the program fails, or if --fail-on applies.
    """
    from syncscan import api, load
    from syncscan.dryrun.pretend import pretend_gpu

    note_misplaced(script, args)
    refuse(output, force, *([like] if like else []))
    recording = api.analyze(like) if like else None
    if output is not None and load.named_as_saved(output):
        form = "saved"
    program = (*(["-m"] if module else []), script, *args)
    options: dict[str, Any] = {}
    if form in ("text", "markdown"):
        options = {"verbose": verbose, "program": program}
    if form == "text":
        options |= {"width": width(), "color": output is None and colors()}

    def work() -> _Reported:
        return _dry(script, args, module, steps, pretend_gpu(device), recording, form, options)

    say(scratch.sentence())
    ran = in_view(work)
    deliver(ran.text, output, force)
    if ran.failed or (fail_on and ran.races) or (fail_on == "sync" and ran.syncs):
        sys.exit(1)


def _dry(
    script: str,
    args: tuple[str, ...],
    module: bool,
    steps: int,
    pretended: Pretended,
    recording: Analysis | None,
    form: str,
    options: dict[str, Any],
) -> _Reported:
    """Run the program on a simulated GPU, and render the report."""

    def give_up() -> None:
        say(f"ended the program's process: {STOPS} times it caught the exception that ends it")
        pretended.conclude()
        end_with(_reported(pretended, recording, form, options, failed=False))

    file, function = _parts(script)
    with contextlib.redirect_stdout(sys.stderr), pretended:
        if function:
            failed = _called(_function(file, function), steps, pretended)
        else:
            failed = _run(script, args, module, steps, pretended, give_up)
    return _reported(pretended, recording, form, options, failed=failed)


def _reported(
    pretended: Pretended, recording: Analysis | None, form: str, options: dict[str, Any], *, failed: bool
) -> _Reported:
    from syncscan import report
    from syncscan.report.phrases import real

    analysis = pretended.like(recording) if recording else pretended.analysis
    if form not in ("text", "html", "saved"):  # their part on the run has what lies between the steps
        analysis = replace(analysis, findings=pretended.findings)
    warn(analysis.warnings)
    text = analysis.to_saved() if form == "saved" else report.render(analysis, form, **options)
    return _Reported(text, failed, bool(analysis.races), bool(real(pretended.findings)))


def _parts(script: str) -> tuple[str, str]:
    """Return file and function of FILE.py:FUNCTION; for anything else, the script and an empty name."""
    file, colon, function = script.rpartition(":")
    return (file, function) if colon and function.isidentifier() and not Path(script).exists() else (script, "")


def _function(file: str, name: str) -> Callable[[], object]:
    if not Path(file).is_file():
        raise UsageError(f"{file} doesn't exist.", "Give a Python file and a function in it: FILE.py:FUNCTION.")
    sys.path.insert(0, str(Path(file).resolve().parent))
    spec = importlib.util.spec_from_file_location(Path(file).stem, Path(file).resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} can't be imported.", "Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{file} has no function '{name}'.")
    return function  # type: ignore[no-any-return]


def _called(function: Callable[[], object], steps: int, pretended: Pretended) -> bool:
    """Call a function once to settle and then once per step; return whether it failed."""
    try:
        function()
        for _ in range(steps):
            pretended.step()
            function()
        pretended.end_step()
    except Exception as error:
        traceback.print_exc()
        pretended.failed(error)
        return True
    return False


def _run(
    script: str,
    args: tuple[str, ...],
    module: bool,
    steps: int,
    pretended: Pretended,
    give_up: Callable[[], None],
) -> bool:
    """Run a script or a command as Python would, to the end of its last step; return whether it failed.

    What a launcher starts in many processes runs as one rank of one. `give_up` ends one that can't be stopped.
    """
    from syncscan.capture.commands import in_this_process, resolved
    from syncscan.capture.main_script import run_main

    if not module and script.endswith(".py") and not Path(script).exists():
        raise UsageError(f"{script} doesn't exist.", "Give a script, a command, or FILE.py:FUNCTION.")
    command = resolved((script, *args), module=module)
    if command.launcher:
        program = in_this_process(command, "dryrun")
        say(f"runs {program.target} as a single rank, without {command.launcher}")
        command = program
    with _steps_counted(steps, pretended, give_up):
        ended = run_main(command.target, command.arguments, module=command.module, ends_quietly=_DryRunComplete)
    failed = ended.code != 0
    if failed:
        pretended.failed()
    return failed


@contextlib.contextmanager
def _steps_counted(steps: int, pretended: Pretended, give_up: Callable[[], None]) -> Iterator[None]:
    """End a step with every step of the program's optimizer, or round of its loop; the last one ends the program."""
    from syncscan.capture.optimizer_hook import OptimizerCall, StepMarks
    from syncscan.dryrun.program_steps import after_steps

    marks, done, stops = StepMarks(), 0, 0

    def stop() -> None:
        nonlocal stops
        stops += 1
        if stops == STOPS:
            give_up()
        if rounds is not None:
            rounds.stop_again(stop)
        raise _DryRunComplete

    def stepped(optimizer: Any) -> None:
        if rounds is not None and rounds.repeated is not None:
            return
        if marks.saw(optimizer, fixed=done > 0) is not OptimizerCall.NOTHING:
            if rounds is not None:
                rounds.close()
            ended()

    def ended() -> None:
        nonlocal done
        done += 1
        if done <= steps:
            pretended.step()
        elif done == steps + 1:
            pretended.end_step(then=stop)
        else:
            stop()

    rounds = pretended.watch_rounds(ended)
    with after_steps(stepped):
        yield
    if rounds is not None:
        rounds.close()
    if done <= steps and (rounds is None or rounds.repeated is None):
        pretended.count_all()
