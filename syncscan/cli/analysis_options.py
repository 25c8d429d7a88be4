"""Options that choose how a trace is analyzed, shared by every command that reads one."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from syncscan.cli import lean, memory_limit
from syncscan.cli.finite import Finite
from syncscan.cli.progress import reading

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.stage_clock import StageClock

_SLICE = re.compile(r"(\d{0,9}):(\d{0,9})")
_SCOPE = "scope:"


class AnalysisOptions(msgspec.Struct, frozen=True):
    """Options of an analysis, named as the parameters of `api.analyze`."""

    step_ms: float | None = None
    step_scope: str | None = None
    steps: Literal["auto", "none"] | slice = "auto"
    process: str | None = None
    source_root: tuple[str, ...] = ()
    max_memory: int | None = None

    def analysis_of(self, trace: str, clock: StageClock | None = None) -> Analysis:
        """Return the analysis of a trace, with a progress bar if reading takes long."""
        from syncscan import api

        lean.before_reading()
        with reading(trace) as progress:
            return api.analyze(
                trace,
                **self.of_each(),
                process=self.process,
                progress=progress,
                max_memory=self.max_memory,
                clock=clock,
            )

    def of_each(self) -> dict[str, Any]:
        """Return those that apply to each of many traces, as keywords of `api.analyze`."""
        return {
            "step_ms": self.step_ms,
            "step_scope": self.step_scope,
            "steps": self.steps,
            "source_roots": self.source_root,
        }


class _StepsType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "steps"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, slice) or value in ("auto", "none") or str(value).startswith(_SCOPE):
            return value
        match = _SLICE.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is not 'auto', 'none', A:B such as 1:3, or scope:GLOB.", param, ctx)
        return slice(*(int(number) if number else None for number in match.groups()))


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, which gets them as one argument, `analysis_options`."""
    process = click.option("--process", metavar="PID", help="Analyze this process, in a trace that holds several.")
    return _step_ms("Step time")(process(options_of_several(command)))


def options_of_several(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that apply to several recordings: all but the step's time and the process."""
    return _of_steps(memory_limit.held(_asking(command)))


def options_of_a_job(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that apply to a whole job, whose processes divide the memory."""
    return _step_ms("The job's step time")(_of_steps(_asking(command)))


def _step_ms(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--step-ms", type=Finite(min=0, min_open=True), help=f"{what} without the profiler, in milliseconds."
    )


def _asking(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def with_options(
        steps: Any,
        source_root: tuple[str, ...],
        step_ms: float | None = None,
        process: str | None = None,
        **arguments: Any,
    ) -> Any:
        scope = steps.removeprefix(_SCOPE) if isinstance(steps, str) and steps.startswith(_SCOPE) else None
        analysis_options = AnalysisOptions(
            step_ms=step_ms,
            step_scope=scope,
            steps=steps if scope is None else "auto",
            process=process,
            source_root=source_root,
            max_memory=memory_limit.size(),
        )
        return command(analysis_options=analysis_options, **arguments)

    return with_options


def _of_steps(command: Callable[..., Any]) -> Callable[..., Any]:
    steps = click.option(
        "--steps",
        type=_StepsType(),
        default="auto",
        show_default=True,
        metavar="auto|none|A:B|scope:GLOB",
        help="Find the steps, treat the whole trace as one step, analyze steps A to B - 1 (counted from 0), or treat "
        "every range whose name matches GLOB as a step.",
    )
    roots = click.option(
        "--source-root",
        multiple=True,
        metavar="DIR|OLD=NEW",
        help="Look for sources under DIR, or map the recorded prefix OLD to NEW (repeatable).",
    )
    return steps(roots(command))
