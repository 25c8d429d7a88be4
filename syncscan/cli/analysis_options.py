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


class AnalysisOptions(msgspec.Struct, frozen=True):
    """Options of an analysis, named as the parameters of `api.analyze`."""

    step_ms: float | None
    step_scope: str | None
    steps: Literal["auto", "none"] | slice
    process: str | None
    max_memory: int | None
    source_root: tuple[str, ...]
    cache: bool

    def analysis_of(self, trace: str, clock: StageClock | None = None) -> Analysis:
        """Return the analysis of a trace, with a progress bar if reading takes long.

        Args:
            trace: its path.
            clock: called at the end of each stage.
        """
        from syncscan import api

        lean.before_reading()
        with reading(trace) as progress:
            return api.analyze(
                trace,
                step_ms=self.step_ms,
                step_scope=self.step_scope,
                steps=self.steps,
                process=self.process,
                progress=progress,
                max_memory=self.max_memory,
                source_roots=self.source_root or (),
                cache=bool(self.cache),
                clock=clock,
            )

    def of_each(self) -> dict[str, Any]:
        """Return those that apply to each of many traces, as keywords of `api.analyze`."""
        return {
            "step_ms": self.step_ms,
            "step_scope": self.step_scope,
            "steps": self.steps,
            "source_roots": self.source_root or (),
        }


class _StepsType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "steps"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, slice) or value in ("auto", "none"):
            return value
        match = _SLICE.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is not 'auto', 'none' or A:B, such as 1:3.", param, ctx)
        return slice(*(int(number) if number else None for number in match.groups()))


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, which gets them as one argument, `analysis_options`."""
    step_ms = click.option(
        "--step-ms", type=Finite(min=0, min_open=True), help="Step time without the profiler, in milliseconds."
    )
    process = click.option("--process", metavar="PID", help="Analyze this process, in a trace that holds several.")
    cache = click.option(
        "--cache", is_flag=True, help="Cache the parsed trace next to TRACE, to read it faster next time."
    )
    return step_ms(_of_steps(process(memory_limit.option(cache(_asking(command))))))


def options_of_several(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that apply to several recordings: all but the step's time and the process."""
    return _of_steps(memory_limit.option(_asking(command)))


def options_of_a_job(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that apply to a whole job."""
    step_ms = click.option(
        "--step-ms",
        type=Finite(min=0, min_open=True),
        help="The job's step time without the profiler, in milliseconds.",
    )
    return step_ms(_of_steps(memory_limit.option_of_processes(_asking(command))))


def _asking(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def with_options(**arguments: Any) -> Any:
        analysis_options = AnalysisOptions(
            **{name: arguments.pop(name, None) for name in AnalysisOptions.__struct_fields__}
        )
        return command(analysis_options=analysis_options, **arguments)

    return with_options


def _of_steps(command: Callable[..., Any]) -> Callable[..., Any]:
    scope = click.option("--step-scope", metavar="GLOB", help="Treat every range with this name as a step.")
    steps = click.option(
        "--steps",
        type=_StepsType(),
        default="auto",
        show_default=True,
        metavar="auto|none|A:B",
        help="Find the steps, treat the whole trace as one step, or analyze steps A to B - 1 (counted from 0).",
    )
    roots = click.option(
        "--source-root",
        multiple=True,
        metavar="DIR|OLD=NEW",
        help="Look for sources under DIR, or map the recorded prefix OLD to NEW (repeatable).",
    )
    return scope(steps(roots(command)))
