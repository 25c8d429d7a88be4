"""`syncscan profile SCRIPT [ARGS]`: record a few steps of a training script, and report their syncs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from syncscan.cli import memory_limit, profile_outcome, running_options
from syncscan.cli.output import announce
from syncscan.cli.script_streams import DieOfInterrupt, ScriptStreams
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.capture.captured_command import WantedCaptures
    from syncscan.capture.commands import Command
    from syncscan.capture.script_capture import ScriptRun
    from syncscan.capture.session import Session

SAMPLED_S = 5.0
SAMPLE = f"""How long to sample the host's stacks, after the last cycle and without the profiler; 0 turns sampling off
(the default with --every and --on-signal). [default: {SAMPLED_S:g}]"""


ACTIVE = "Steps to record per cycle. auto: 3, or a whole period if steps alternate."

EXPLAIN_COMPILE = """Report where torch.compile breaks its graphs, falls back to eager and recompiles, and dynamo's
reasons, and which graphs Inductor makes no CUDA graph of."""


def _active(context: click.Context, option: click.Parameter, value: str) -> int | None:
    """Return the number of steps; None for as many as needed."""
    if value == "auto":
        return None
    if not value.lstrip("-").isdigit():
        raise click.BadParameter(f"'{value}' is neither a number of steps nor auto.")
    return int(value)


@click.command(
    "profile",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a training script under the profiler and report.",
)
@running_options.module
@click.option("--wait", default=1, show_default=True, help="Steps per cycle before the profiler starts.")
@click.option("--warmup", default=4, show_default=True, help="Steps per cycle for the profiler to warm up.")
@click.option("--active", default="auto", show_default=True, metavar="N|auto", callback=_active, help=ACTIVE)
@click.option("--repeat", default=1, show_default=True, help="Number of cycles; each writes a trace.")
@click.option(
    "--calibrate", default=10, show_default=True, help="Steps to time without the profiler, after 3 to settle."
)
@click.option("--sample", type=float, metavar="SECONDS", help=SAMPLE)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("syncscan-out"), show_default=True
)
@click.option("--name", "prefix", help="Prefix of the file name.  [default: the script's name]")
@click.option(
    "--stacks/--no-stacks", default=False, show_default=True, help="Also record Python frames, at a higher cost."
)
@click.option("--shapes/--no-shapes", default=False, show_default=True, help="Record input shapes.")
@click.option("--explain-compile", is_flag=True, help=EXPLAIN_COMPILE)
@click.option("--keep-running", is_flag=True, help="Let the script run on to its end after the last cycle.")
@click.option("--start-at", type=int, metavar="STEP", help="Start the capture after this many steps.")
@click.option("--every", type=int, metavar="N", help="Start another capture every N steps; the script runs on.")
@click.option(
    "--on-signal",
    metavar="NAME",
    help="Start a capture whenever this signal arrives, such as USR2; the script runs on.",
)
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    module: bool,
    wait: int,
    warmup: int,
    active: int | None,
    repeat: int,
    calibrate: int,
    sample: float | None,
    out: Path,
    prefix: str | None,
    stacks: bool,
    shapes: bool,
    explain_compile: bool,
    keep_running: bool,
    start_at: int | None,
    every: int | None,
    on_signal: str | None,
    script: str,
    args: tuple[str, ...],
) -> None:
    """Run SCRIPT with ARGS, record a few of its steps, and report their syncs.

    SCRIPT is a Python file, or a command as you would type it: python, torchrun, accelerate launch, deepspeed, the name
    of a console script, a shell script. SCRIPT and the processes that it starts aren't changed. Each process that runs
    steps is captured, by rank.

    A step ends when an optimizer's step() returns; without an optimizer, after each iteration of the outermost loop
    that calls the device; or, if the script uses syncscan.profile itself, when it calls prof.step(). The script is
    stopped after the last cycle is recorded and the host has been sampled. Options of syncscan come before SCRIPT,
    options of the script after it. The exit code is the script's.

    With --start-at, --every or --on-signal, the job runs at full speed before and after each capture.
    """
    from syncscan.capture.plan import Demand, Plan

    demand = Demand(start_at, every, on_signal)
    if sample is None:  # a job that is captured again and again runs at full speed as soon as a trace is written
        sample = 0.0 if demand.standing else SAMPLED_S
    cycle = {"wait": wait, "warmup": warmup, "active": 3 if active is None else active, "repeat": repeat}
    plan = Plan(**cycle, calibrate=calibrate, sample=sample, auto=active is None, stacks=stacks, shapes=shapes)
    from syncscan.capture.captured_command import WantedCaptures

    on = keep_running or demand.standing
    wanted = WantedCaptures("", str(out.absolute()), prefix or "", plan, demand, on)
    _capture((script, *args), module, wanted, out, explain_compile)


def _capture(
    words: tuple[str, ...], module: bool, wanted: WantedCaptures, out: Path, explain_compile: bool
) -> NoReturn:
    """Run a script or command captured, report its last trace, and end with its exit code.

    The words are as typed; with `module`, the first is a module, to be run as by `python -m`.
    """
    from syncscan.capture import captured_command
    from syncscan.capture.commands import resolved
    from syncscan.capture.trace_file import prepare

    prepare(out)
    streams, interrupt = ScriptStreams(), DieOfInterrupt()
    command = resolved(words, module=module)
    with captured_command.folder() as seen:
        run = _run(command, replace(wanted, seen=str(seen)), out, explain_compile, streams)
        runs = [] if run.marked_by else captured_command.runs(seen)
        run = profile_outcome.of_processes(run, runs)
    with streams.restored():
        profile_outcome.explain(run, wanted.plan, wanted.demand)
        profile_outcome.explain_unused_options(run)
        if run.paths:
            _report(run.paths[-1], streams.printed, _program(command, words, module))
        if any(process.world > 1 for process in runs) and len(run.paths) > 1:
            announce(f"syncscan fleet {out} joins the captures of the {run.ranks} processes")
    interrupt.pending = run.interrupted
    sys.exit(1 if run.failed and run.stopped else run.exit_code)


def _run(
    command: Command, wanted: WantedCaptures, out: Path, explain_compile: bool, streams: ScriptStreams
) -> ScriptRun:
    """Run a command and the processes that it starts under the capture."""
    from syncscan.capture.captured_command import follow_forks, inheriting, run_with
    from syncscan.capture.commands import notebook
    from syncscan.capture.program_name import default_name
    from syncscan.capture.script_capture import ScriptRun, run_script

    wanted = replace(wanted, name=wanted.name or notebook(command) or "")
    if command.launcher:
        if explain_compile:
            raise UsageError(
                f"--explain-compile doesn't reach the processes that {command.launcher} starts.",
                "Give the script itself, or leave out --explain-compile.",
            )
        return ScriptRun(run_with(command.words, wanted.variables()), (), 0, "", False, False)

    def session() -> Session:
        recording = wanted.session(wanted.name or default_name(), streams.say)
        recording.wrote = lambda path: streams.say(f"wrote {out / path.name}")
        return recording

    with contextlib.ExitStack() as over, inheriting(wanted.variables()):
        over.callback(follow_forks(wanted))
        return run_script(
            command.target,
            command.arguments,
            session,
            module=command.module,
            keep_running=wanted.keep_running,
            explain_compile=explain_compile,
            say=streams.say,
        )


def _program(command: Command, words: tuple[str, ...], module: bool) -> tuple[str, ...] | None:
    """Return the program and its arguments as another command of syncscan's takes them; None where none does."""
    from syncscan.capture.commands import names_one_program

    if not names_one_program(command):
        return None
    return ("-m", *words) if module else words


def _report(path: Path, warned: Collection[str], program: tuple[str, ...] | None) -> None:
    """Print the analysis of a trace on stdout, as `syncscan analyze` does; the next command is for this program."""
    from syncscan import api, report
    from syncscan.cli.output import colors, deliver, warn_briefly, width

    with memory_limit.limited(memory_limit.size()) as most:
        analysis = api.analyze(path, max_memory=most)
        warn_briefly(analysis, warned)
        deliver(report.render(analysis, "text", width=width(), color=colors(), program=program), None)
