"""`syncscan profile SCRIPT [ARGS]`: from a training script to traces of a few steps and a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from syncscan.capture.plan import Plan
    from syncscan.capture.script import ScriptRun

NO_STEPS = """\
The script never called the step of an optimizer in this process, so nothing was captured.
Mark its steps yourself, and run it as it is:
    with syncscan.profile() as prof:
        for batch in batches:
            ...
            prof.step()
If it trains in processes of its own (torchrun, mp.spawn), start this command in each of them:
    torchrun --nproc-per-node N -m syncscan profile SCRIPT"""


@click.command(
    "profile",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a training script under the profiler and report.",
)
@click.option("-m", "module", is_flag=True, help="SCRIPT is a module, to be run as by `python -m`.")
@click.option("--wait", default=1, show_default=True, help="Steps of a cycle without the profiler.")
@click.option("--warmup", default=4, show_default=True, help="Steps of a cycle that the profiler warms up on.")
@click.option("--active", default=3, show_default=True, help="Steps of a cycle that are recorded.")
@click.option("--repeat", default=1, show_default=True, help="Cycles; each writes a trace.")
@click.option("--calibrate", default=10, show_default=True, help="Steps timed without the profiler, after 3 to settle.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("syncscan-out"), show_default=True
)
@click.option("--name", help="What the file's name begins with; the script's name if not given.")
@click.option("--stacks/--no-stacks", default=False, show_default=True, help="Record Python frames too; dearer.")
@click.option("--shapes/--no-shapes", default=False, show_default=True, help="Record the shapes of inputs.")
@click.option("--keep-running", is_flag=True, help="Let the script run to its end after the last cycle.")
@click.option(
    "--open",
    "viewer",
    type=click.Choice(["html", "tensorboard", "perfetto"]),
    help="Show the trace in a browser afterwards, until Ctrl-C.",
)
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    module: bool,
    wait: int,
    warmup: int,
    active: int,
    repeat: int,
    calibrate: int,
    out: Path,
    name: str | None,
    stacks: bool,
    shapes: bool,
    keep_running: bool,
    viewer: str | None,
    script: str,
    args: tuple[str, ...],
) -> None:
    """Run SCRIPT with ARGS, record a few of its training steps, and report their syncs.

    The script is left as it is. A step ends where an optimizer's step returns, or where the script calls prof.step(),
    if it uses syncscan.profile itself. When the last cycle is recorded the script is ended. Options for syncscan come
    before SCRIPT, the script's own after it. The exit code is the script's.
    """
    from syncscan.capture.plan import Plan
    from syncscan.capture.script import run_script
    from syncscan.capture.session import Session, default_name
    from syncscan.capture.write import prepare

    plan = Plan(wait, warmup, active, repeat, calibrate)
    prepare(out)

    def session() -> Session:
        return Session(out, name or default_name(), plan, stacks=stacks, shapes=shapes, notify=_say)

    run = run_script(script, args, session, module=module, keep_running=keep_running)
    _tell(run, plan)
    sys.stdout.flush()
    if run.paths:
        _report(run.paths[-1], viewer)
    sys.exit(run.exit_code)


def _tell(run: ScriptRun, plan: Plan) -> None:
    """Say on stderr what was captured, and where nothing was, why and what to do."""
    for path in run.paths:
        _say(f"wrote {path}")
    if run.stopped:
        _say(f"ended the script after {run.steps} steps: the capture is complete (--keep-running lets it run on)")
    if not run.marked_by and run.exit_code == 0:
        _say(NO_STEPS)
    elif run.marked_by and not run.paths:
        _say(
            f"The script ended after {run.steps} steps ({run.marked_by}), before the first that is recorded:"
            f" {plan.steps} are needed. Let it run longer, or ask for less:"
            " --calibrate 0 --wait 0 --warmup 1 --active 1."
        )
    elif run.paths and not run.complete:
        _say(f"The script ended after {run.steps} of {plan.steps} steps: the last trace holds a part of a cycle.")


def _say(sentence: str) -> None:
    click.echo(f"syncscan: {sentence}", err=True)


def _report(path: Path, viewer: str | None) -> None:
    """Print the analysis of a trace on stdout, as `syncscan analyze` does, and open the trace in a viewer if asked."""
    from syncscan import api
    from syncscan.cli.open import show
    from syncscan.cli.output import deliver, warn
    from syncscan.cli.terminal import colors, width
    from syncscan.report import text

    analysis = api.analyze(path)
    warn(analysis.warnings)
    deliver(text.render(analysis, width=width(), color=colors()), None)
    if viewer:
        show(analysis, str(path), viewer)
