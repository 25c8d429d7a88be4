"""From the options that say what of a trace is analysed to its analysis: the same for every command that reads one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import click

from syncscan.cli import memory
from syncscan.cli.finite import Finite
from syncscan.cli.progress import reading

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked of an analysis; its parts are those of `api.analyze`."""

    step_ms: float | None
    step_scope: str | None
    steps: Literal["auto", "none"]
    process: str | None
    max_memory: int | None

    def analysis_of(self, trace: str) -> Analysis:
        """Read and analyse a trace, with a bar where that takes a while."""
        from syncscan import api

        with reading(trace) as progress:
            return api.analyze(
                trace,
                step_ms=self.step_ms,
                step_scope=self.step_scope,
                steps=self.steps,
                process=self.process,
                progress=progress,
                max_memory=self.max_memory,
            )


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, which gets them as one argument, `asked`."""
    step_ms = click.option("--step-ms", type=Finite(min=0, min_open=True), help="The step's time without the profiler.")
    process = click.option("--process", metavar="PID", help="Of a trace of several processes, the one to analyze.")
    return step_ms(_of_steps(process(memory.option(_asking(command)))))


def options_of_several(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add those that mean something of several recordings at once: a step's time, or a process, is of one alone."""
    return _of_steps(memory.option(_asking(command)))


def _asking(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def with_asked(**arguments: Any) -> Any:
        asked = Asked(**{field.name: arguments.pop(field.name, None) for field in fields(Asked)})
        return command(asked=asked, **arguments)

    return with_asked


def _of_steps(command: Callable[..., Any]) -> Callable[..., Any]:
    scope = click.option("--step-scope", metavar="GLOB", help="Take every range of this name as a step.")
    steps = click.option(
        "--steps",
        type=click.Choice(("auto", "none")),
        default="auto",
        show_default=True,
        help="Find the steps, or take the whole trace as one.",
    )
    return scope(steps(command))
