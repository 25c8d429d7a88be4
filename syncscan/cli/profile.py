"""`syncscan profile SCRIPT [ARGS]`: record a few steps of a training script, and report their syncs."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from syncscan.cli import memory_limit
from syncscan.cli.needs import Need, given, name, needs
from syncscan.errors import UsageError
from syncscan.report.printable import printable

if TYPE_CHECKING:
    from syncscan.capture.demand import Demand
    from syncscan.capture.plan import Plan
    from syncscan.capture.processes import ProcessRun
    from syncscan.capture.script import ScriptRun
    from syncscan.capture.session import Session
    from syncscan.live.start import Wanted

NO_STEPS = """\
Nothing was captured: neither the script nor a process that it started called an optimizer's step(), and no loop that
calls the device ran often enough to define a step.
Mark its steps yourself, and run the script:
    with syncscan.profile() as prof:
        for batch in batches:
            ...
            prof.step()
Processes started with a custom environment aren't captured: use their launcher's command instead, as in
    syncscan profile torchrun --nproc-per-node N SCRIPT"""

SAMPLED_S = 5.0
SAMPLE = f"""How long to sample the host's stacks, after the last cycle and without the profiler; 0 turns sampling off
(the default with --every and --on-signal). [default: {SAMPLED_S:g}]"""


ACTIVE = """Steps to record per cycle. auto: 3, or a whole period if steps alternate; and then each phase between steps
that takes more than a few percent of the run."""

EXPLAIN_COMPILE = """Report where torch.compile breaks its graphs, falls back to eager and recompiles, and dynamo's
reasons. A program that compiles nothing runs one more step, in which dynamo compiles each of its modules."""


def _active(context: click.Context, option: click.Parameter, value: str) -> int | None:
    """Return the number of steps; None for as many as needed."""
    if value == "auto":
        return None
    if not value.lstrip("-").isdigit():
        raise click.BadParameter(f"'{value}' is neither a number of steps nor auto.")
    return int(value)


WATCH = """Record nothing, but watch which lines wait, as long as the script runs."""

EXPORT = """With --watch, also export each window: prometheus:[HOST:]PORT, prometheus:FILE, opentelemetry or
tensorboard:FOLDER (repeatable)."""

ON_ALARM = """With --watch, run this command on an alarm, with the alarm as JSON on its standard input."""

NOT_OF_A_WATCH = tuple(
    "wait warmup active repeat calibrate sample stacks shapes explain_compile keep_running start_at every on_signal"
    " viewer max_memory".split()
)
"""Options of a capture."""
OF_A_WATCH = ("interval", "capture_on_alarm", "on_alarm", "fail_on_alarm", "exports")


@click.command(
    "profile",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a training script under the profiler and report.",
)
@click.option("-m", "module", is_flag=True, help="Run SCRIPT as a module, like `python -m`.")
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
@click.option(
    "--open",
    "viewer",
    type=click.Choice(["html", "tensorboard", "perfetto"]),
    help="Show the trace in a browser afterwards, until Ctrl-C.",
)
@click.option("--watch", is_flag=True, help=WATCH)
@click.option(
    "--interval",
    default=20.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Length of a --watch window in seconds.",
)
@click.option(
    "--capture-on-alarm", is_flag=True, help="With --watch, capture some steps if a line waits more than before."
)
@click.option("--on-alarm", metavar="COMMAND", help=ON_ALARM)
@click.option("--fail-on-alarm", is_flag=True, help="With --watch, exit 1 at the job's end if there was an alarm.")
@click.option("--export", "exports", multiple=True, metavar="WHERE", help=EXPORT)
@memory_limit.option_of_reading
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@needs(
    *(Need(option, "watch") for option in OF_A_WATCH),
    *(Need(option, "watch", never=True) for option in NOT_OF_A_WATCH),
)
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
    viewer: str | None,
    watch: bool,
    interval: float,
    capture_on_alarm: bool,
    on_alarm: str | None,
    fail_on_alarm: bool,
    exports: tuple[str, ...],
    max_memory: int | None,
    script: str,
    args: tuple[str, ...],
) -> None:
    """Run SCRIPT with ARGS, record a few of its steps, and report their syncs.

    SCRIPT is a Python file, or a command as you would type it: python, torchrun, accelerate launch, deepspeed, the name
    of a console script, a shell script. SCRIPT and the processes that it starts aren't changed. Each process that runs
    steps is captured, by rank.

    A step ends when an optimizer's step() returns; without an optimizer, after each iteration of the outermost loop
    that calls the device; or, if the script uses syncscan.profile itself, when it calls prof.step(). The script is
    stopped after the last cycle is recorded, the host has been sampled, and each phase between steps that takes more
    than a few percent has been recorded. Options of syncscan come before SCRIPT, options of the script after it. The
    exit code is the script's.

    With --start-at, --every or --on-signal, the job runs at full speed before and after each capture.

    With --watch, nothing is recorded. As long as the script runs, a sampler writes to a file in --out which lines wait;
    `syncscan watch` shows it.
    """
    if watch:
        from syncscan.live.start import Wanted

        watched = Wanted(str(out.absolute()), prefix or "", interval, capture_on_alarm, exports, on_alarm or "")
        _watch((script, *args), module, watched, fail_on_alarm)
    from syncscan.capture import processes
    from syncscan.capture.captured_process import follow_forks
    from syncscan.capture.commands import notebook, resolved
    from syncscan.capture.demand import Demand
    from syncscan.capture.plan import Plan
    from syncscan.capture.script import ScriptRun, run_script
    from syncscan.capture.session import Session, default_name
    from syncscan.capture.write import prepare

    demand = Demand(start_at, every, on_signal)
    if sample is None:  # a job that is asked again and again runs at full speed as soon as a capture is written
        sample = 0.0 if demand.standing else SAMPLED_S
    plan = Plan(wait, warmup, 3 if active is None else active, repeat, calibrate, sample=sample, auto=active is None)
    prepare(out)
    folder, streams = out.absolute(), _Streams()

    def session() -> Session:
        made = Session(folder, prefix or default_name(), plan, demand, stacks=stacks, shapes=shapes, notify=streams.say)
        made.wrote = lambda path: streams.say(f"wrote {out / path.name}")
        return made

    command = resolved((script, *args), module=module)
    dies = _DiesOfInterrupt()
    keep_running = keep_running or demand.standing
    with processes.folder() as seen:
        wanted = processes.WantedCaptures.of(
            seen,
            folder,
            prefix or notebook(command),
            plan,
            demand,
            stacks=stacks,
            shapes=shapes,
            keep_running=keep_running,
        )
        if command.launcher:
            if explain_compile:
                raise UsageError(
                    f"--explain-compile doesn't reach the processes that {script} starts.",
                    "Give the script itself, or leave out --explain-compile.",
                )
            code = processes.run_command(command.words, wanted)
            run = ScriptRun(code, (), 0, "", False, False)
        else:
            with contextlib.ExitStack() as over, processes.inherited(wanted):
                over.callback(follow_forks(wanted))
                run = run_script(
                    command.target,
                    command.arguments,
                    session,
                    module=command.module,
                    keep_running=keep_running,
                    explain_compile=explain_compile,
                    say=streams.say,
                )
        of = [] if run.marked_by else processes.runs(seen)
        run = _of_processes(run, of)
    with streams.back():
        _tell(run, plan, demand)
        _tell_unheeded(run)
        if run.paths:
            _report(run.paths[-1], viewer, max_memory, streams.said)
        if any(one.world > 1 for one in of) and len(run.paths) > 1:
            _say(f"syncscan fleet {out} joins the captures of the {run.ranks} processes")
    dies.now = run.interrupted
    sys.exit(1 if run.failed and run.stopped else run.exit_code)


def _watch(words: tuple[str, ...], module: bool, wanted: Wanted, fail_on_alarm: bool) -> None:
    """Run a script or command watched, and end with its exit code, or 1 where an alarm is to fail it."""
    from syncscan.capture.commands import resolved
    from syncscan.live.start import run_command_watched, run_watched

    streams, dies = _Streams(), _DiesOfInterrupt()
    command, began = resolved(words, module=module), time.time()
    if command.launcher:
        code = run_command_watched(command.words, wanted)
    else:
        ended, running = run_watched(command.target, command.arguments, wanted, module=command.module, say=streams.say)
        if running.path is None:
            streams.say(
                "No step ended in this process, so there is no watch file. Mark steps with step() of syncscan.watch."
            )
        else:
            path = _shown(running.path)
            streams.say(f"Wrote {path}; to view it: syncscan watch {path}")
        dies.now, code = ended.interrupted, ended.code
    sys.exit(code or (_alarmed(wanted, began, streams.say) if fail_on_alarm else 0))


def _shown(path: Path) -> Path:
    """Return a path as the user would write it from here."""
    with contextlib.suppress(ValueError):
        return path.relative_to(Path.cwd())
    return path


def _alarmed(wanted: Wanted, began: float, say: Callable[[str], None]) -> int:
    """Return the exit code 1 where a watch that began since then had an alarm, after telling each; else 0."""
    from syncscan.live.alarm_command import alarmed_since

    alarms = alarmed_since(Path(wanted.out), began)
    for begin, alarm in alarms[:20]:
        rank = f"rank {begin.rank}, " if begin is not None and begin.world > 1 else ""
        say(f"alarm ({rank}step {alarm.total_steps}): {alarm}")
    return 1 if alarms else 0


def _of_processes(run: ScriptRun, of: Sequence[ProcessRun]) -> ScriptRun:
    """Join what a program's processes captured, as if one had: the report is of the first rank's last trace."""
    if not of:
        return run
    return replace(
        run,
        exit_code=0 if all(one.stopped for one in of) else run.exit_code,
        paths=tuple(path for one in reversed(of) for path in one.paths),
        steps=max(one.steps for one in of),
        marked_by=of[0].marked_by,
        complete=all(one.complete for one in of),
        stopped=all(one.stopped for one in of),
        failed=next((one.failed for one in of if one.failed), None),
        ranks=len(of),
    )


class _Streams:
    """The streams as they are before a script replaces or closes them."""

    def __init__(self) -> None:
        self._out, self._err = sys.stdout, sys.stderr
        self._spare = _duplicate(sys.stdout)
        self.said: set[str] = set()
        """Sentences that were printed while the script ran."""

    def say(self, sentence: str) -> None:
        """Write a sentence to the user, on stderr, if the script has left it open."""
        if not self._err.closed:
            self.said.add(sentence)
            click.echo(f"syncscan: {printable(sentence, lines=True)}", file=self._err)

    @contextlib.contextmanager
    def back(self) -> Iterator[None]:
        """Let a report go where the command's output goes, and give the script its own streams back afterwards."""
        theirs = sys.stdout, sys.stderr
        for stream in theirs:
            with contextlib.suppress(ValueError, OSError, AttributeError):  # closed, or something of the script's own
                stream.flush()
        with contextlib.ExitStack() as spare:
            sys.stdout, sys.stderr = self._out, self._err
            if self._out.closed:
                sys.stdout = spare.enter_context(open(os.devnull if self._spare is None else self._spare, "w"))
            if self._err.closed:
                sys.stderr = spare.enter_context(open(os.devnull, "w"))
            try:
                yield
            finally:
                with contextlib.suppress(ValueError, OSError):
                    sys.stdout.flush()
                sys.stdout, sys.stderr = theirs


def _duplicate(stream: TextIO) -> int | None:
    """Return another descriptor of the same file, which stays open when the script closes its own."""
    try:
        return os.dup(stream.fileno())
    except (OSError, ValueError, AttributeError, io.UnsupportedOperation):
        return None


class _DiesOfInterrupt:
    """Ends the process as Python ends one whose main program Ctrl-C has ended: by the signal, after everything else."""

    def __init__(self) -> None:
        self.now = False
        atexit.register(self._end)  # before the script registers anything, so that it is the last to be called

    def _end(self) -> None:
        if self.now:
            from syncscan.capture.signals import die_of

            with contextlib.suppress(ValueError, OSError):
                sys.stdout.flush()
            die_of(signal.SIGINT)


def _tell(run: ScriptRun, plan: Plan, demand: Demand) -> None:
    """Say on stderr what came of it, and where nothing was captured, why and what to do."""
    if len(run.paths) > run.ranks:
        other_traces = "the other" if len(run.paths) == 2 else f"the other {len(run.paths) - 1}"
        _say(
            f"this report covers the last of {len(run.paths)} traces, {run.paths[-1].name}; use syncscan analyze for "
            f"{other_traces}"
        )
    if run.failed:
        return
    if run.stopped:
        what = "the script" if run.ranks == 1 else f"its {run.ranks} processes"
        done = "capture is" if run.ranks == 1 else "captures are"
        _say(f"stopped {what} after {run.steps} steps: the {done} complete (--keep-running lets it run on)")
    if not run.marked_by and run.exit_code == 0:
        _say(NO_STEPS)
    elif run.marked_by and not run.paths and demand.standing:
        _say(f"The script ended after {run.steps} steps ({run.marked_by}), but no capture was requested before.")
    elif run.marked_by and not run.paths:
        # The first step ends before anything can be captured: it is what shows where steps end.
        needed = plan.steps + (demand.start_at or 0) + (run.marked_by != "prof.step()")
        _say(
            f"The script ended after {_steps(run.steps)} ({run.marked_by}), before the first recorded step:"
            f" {needed} are needed. Let it run longer, or record fewer steps:"
            " --calibrate 0 --wait 0 --warmup 1 --active 1."
        )
    elif run.paths and not run.complete:
        _say(f"The script ended after {_steps(run.steps)}: the last trace contains only part of a cycle.")


OF_A_CAPTURE = (
    "wait",
    "warmup",
    "active",
    "repeat",
    "calibrate",
    "sample",
    "out",
    "prefix",
    "stacks",
    "shapes",
    "start_at",
    "every",
    "on_signal",
)
"""Options that a script's own `syncscan.profile` takes the place of."""


def _tell_unheeded(run: ScriptRun) -> None:
    """Say which options had no effect on a script that captures itself."""
    context = click.get_current_context()
    options = [name(context.command, option) for option in OF_A_CAPTURE if given(context, option)]
    if run.marked_by == "prof.step()" and options:
        _say(
            f"The script uses syncscan.profile itself, so {', '.join(options)} had no effect. Pass these arguments "
            "there."
        )


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _say(sentence: str) -> None:
    click.echo(f"syncscan: {printable(sentence, lines=True)}", err=True)


def _report(path: Path, viewer: str | None, max_memory: int | None, warned: Collection[str]) -> None:
    """Print the analysis of a trace on stdout, as `syncscan analyze` does, and open the trace in a viewer if asked.

    Args:
        path: the trace.
        viewer: what it is opened in.
        max_memory: how much memory reading it may take, in bytes.
        warned: warnings that the user has had already.
    """
    from syncscan import api
    from syncscan.cli.open import show
    from syncscan.cli.output import deliver, warn
    from syncscan.cli.stdout import colors, width
    from syncscan.report import text

    with memory_limit.limited(max_memory) as most:
        analysis = api.analyze(path, max_memory=most)
        warn(warning for warning in analysis.warnings if warning not in warned)
        deliver(text.render(analysis, width=width(), color=colors()), None)
    if viewer:
        show(analysis, str(path), viewer)
