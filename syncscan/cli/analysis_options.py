"""Options that choose how a trace is analyzed, shared by every command that reads one."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from syncscan.cli import lean, memory_limit
from syncscan.cli.progress import reading
from syncscan.cli.running_options import Finite
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.stage_clock import StageClock
    from syncscan.model.view import View


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


VIEW = ("top", "min_saves", "select", "ignore", "user_only")
"""The options by their parameters' names."""
_LEAST = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s|%)")
_UNITS = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}


class _Saving(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "saving"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        """Return the limit as (µs, part of a step), one of them 0."""
        match = _LEAST.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value} is neither a time (such as 100us) nor a share of the step (such as 2%).")
        number, unit = float(match[1]), match[2]
        return (0.0, number / 100) if unit == "%" else (number * _UNITS[unit], 0.0)


def view_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add these options to a command, which gets them as one argument, `view`."""

    @functools.wraps(command)
    def with_view(
        top: int | None,
        min_saves: tuple[float, float],
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        user_only: bool,
        **arguments: Any,
    ) -> Any:
        from syncscan.model.view import View

        view = View(
            select=globs(select),
            ignore=globs(ignore),
            user_only=user_only,
            least_us=min_saves[0],
            least_share=min_saves[1],
            top=top,
        )
        return command(view=view, **arguments)

    top = click.option("--top", type=click.IntRange(min=1), metavar="N", help="Show the N rows that save the most.")
    least = click.option(
        "--min-saves",
        type=_Saving(),
        default="0us",
        metavar="TIME",
        help="Hide rows that save less, such as 100us, 1ms or 2%.",
    )
    select = click.option(
        "--select", multiple=True, metavar="RULE", help="Show only these rules: ids or globs, comma-separated."
    )
    ignore = click.option(
        "--ignore", multiple=True, metavar="RULE", help="Hide these rules: ids or globs, comma-separated."
    )
    user = click.option("--user-only", is_flag=True, help="Hide findings in library code.")
    return top(least(select(ignore(user(with_view)))))


def refuse_unknown(view: View) -> None:
    """Say before anything is read that a rule isn't there, with the nearest."""
    from syncscan import api

    ids = api.rule_ids() if view.select or view.ignore else ()
    for option, globs in (("--select", view.select), ("--ignore", view.ignore)):
        for glob in globs:
            if not any(fnmatchcase(id, glob) for id in ids):
                import difflib

                close = difflib.get_close_matches(glob.strip("*?"), ids, 3, 0.4)
                hint = f"Did you mean {' or '.join(close)}?" if close else "syncscan explain lists them."
                raise UsageError(f"{option} {glob}: no rule matches.", hint)


def viewed(analysis: Analysis, view: View) -> Analysis:
    """Return the analysis as shown by the options."""
    from msgspec.structs import replace

    if view.user_only and analysis.findings and all(f.owner == "unknown" for f in analysis.findings):
        raise UsageError(
            f"--user-only: {analysis.trace.info.path} doesn't record whether findings are in user or library code.",
            "Record it with syncscan profile, or with with_stack=True.",
        )
    return replace(analysis, view=view)


def globs(values: Iterable[str]) -> tuple[str, ...]:
    """Return the globs of an option, given several times or with commas."""
    return tuple(glob for value in values for part in value.split(",") if (glob := part.strip()))
