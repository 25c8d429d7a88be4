"""Explain to the user how a capture ended: the traces written, and where there is none, why and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from syncscan.cli.needs import given, name
from syncscan.cli.output import announce

if TYPE_CHECKING:
    from syncscan.capture.plan import Demand, Plan
    from syncscan.capture.script_capture import ScriptRun

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


def of_processes(run: ScriptRun, processes: Sequence[ScriptRun]) -> ScriptRun:
    """Join what a program's processes captured, as if one had: the report is of the first rank's last trace."""
    if not processes:
        return run
    return replace(
        run,
        exit_code=0 if all(process.stopped for process in processes) else run.exit_code,
        paths=tuple(path for process in reversed(processes) for path in process.paths),
        steps=max(process.steps for process in processes),
        marked_by=processes[0].marked_by,
        complete=all(process.complete for process in processes),
        stopped=all(process.stopped for process in processes),
        failed=next((process.failed for process in processes if process.failed), None),
        ranks=len(processes),
    )


def explain(run: ScriptRun, plan: Plan, demand: Demand) -> None:
    """Say on stderr what came of it, and where nothing was captured, why and what to do."""
    if len(run.paths) > run.ranks:
        other_traces = "the other" if len(run.paths) == 2 else f"the other {len(run.paths) - 1}"
        announce(
            f"this report covers the last of {len(run.paths)} traces, {run.paths[-1].name}; use syncscan analyze for "
            f"{other_traces}"
        )
    if run.failed:
        return
    if run.stopped:
        ended = "the script" if run.ranks == 1 else f"its {run.ranks} processes"
        done = "capture is" if run.ranks == 1 else "captures are"
        announce(f"stopped {ended} after {run.steps} steps: the {done} complete (--keep-running lets it run on)")
    if not run.marked_by and run.exit_code == 0:
        announce(NO_STEPS)
    elif run.marked_by and not run.paths and demand.standing:
        announce(f"The script ended after {run.steps} steps ({run.marked_by}), but no capture was requested before.")
    elif run.marked_by and not run.paths:
        # The first step ends before anything can be captured: it is what shows where steps end.
        needed = plan.steps + (demand.start_at or 0) + (run.marked_by != "prof.step()")
        announce(
            f"The script ended after {_steps(run.steps)} ({run.marked_by}), before the first recorded step:"
            f" {needed} are needed. Let it run longer, or record fewer steps:"
            " --calibrate 0 --wait 0 --warmup 1 --active 1."
        )
    elif run.paths and not run.complete:
        announce(f"The script ended after {_steps(run.steps)}: the last trace contains only part of a cycle.")


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


def explain_unused_options(run: ScriptRun) -> None:
    """Say which options had no effect on a script that captures itself."""
    context = click.get_current_context()
    options = [name(context.command, option) for option in OF_A_CAPTURE if given(context, option)]
    if run.marked_by == "prof.step()" and options:
        announce(
            f"The script uses syncscan.profile itself, so {', '.join(options)} had no effect. Pass these arguments "
            "there."
        )


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"
