"""Options that choose which findings and habits are shown."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.view import View

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
    """Say before anything is read that a rule isn't there.

    Raises:
        UsageError: no rule is called so; with the nearest.
    """
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
    """Return the analysis as shown by the options.

    Raises:
        UsageError: only the user's own code is wanted, and nothing tells whose code it is.
    """
    from msgspec.structs import replace

    if view.user_only and analysis.findings and all(f.where.owner == "unknown" for f in analysis.findings):
        raise UsageError(
            f"--user-only: {analysis.trace.info.path} doesn't record whether findings are in user or library code.",
            "Record it with syncscan profile, or with with_stack=True.",
        )
    return replace(analysis, view=view)


def globs(values: Iterable[str]) -> tuple[str, ...]:
    """Return the globs of an option, given several times or with commas."""
    return tuple(glob for value in values for part in value.split(",") if (glob := part.strip()))
