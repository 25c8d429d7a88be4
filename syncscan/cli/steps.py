"""`--step-scope`, `--steps` and `--process`: what of a trace is analysed, the same for every command that reads one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--step-scope`, `--steps` and `--process` to a command; their values are those of `api.analyze`."""
    scope = click.option("--step-scope", metavar="GLOB", help="Take every range of this name as a step.")
    steps = click.option(
        "--steps",
        type=click.Choice(("auto", "none")),
        default="auto",
        show_default=True,
        help="Find the steps, or take the whole trace as one.",
    )
    process = click.option("--process", metavar="PID", help="Of a trace of several processes, the one to analyze.")
    return scope(steps(process(command)))
