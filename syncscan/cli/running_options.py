"""Options that choose how a program of the user's is run, shared by every command that runs one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import click

from syncscan.cli.output import say

Command = Callable[..., Any]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Duration(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Seconds, or a number with s, m or h behind."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if match is None:
            self.fail(f"'{value}' is not a duration; write 90s, 5m or 1h.", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


module = click.option("-m", "module", is_flag=True, help="Run SCRIPT as a module, like `python -m`.")
in_place = click.option("--in-place", is_flag=True, help="Let the programs write into your files, not into copies.")


def steps(default: int | None, help_text: str) -> Callable[[Command], Command]:
    """Add `--steps`, how many steps of the program are run."""
    return click.option("--steps", type=click.IntRange(1), default=default, show_default=True, help=help_text)


def limit(default: str, what: str) -> Callable[[Command], Command]:
    """Add `--limit`, how long it may take, such as 90s, 5m or 1h; in seconds for the command."""
    return click.option("--limit", type=_Duration(), default=default, show_default=True, help=f"Time limit for {what}.")


class Finite(click.FloatRange):
    """A number in a range; `float` takes `nan` and `inf` too, and no range stops the first."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number in an option's text."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def note_misplaced(script: str, args: tuple[str, ...]) -> None:
    """Say which arguments of the script are named as options of the running command, in case they are meant for it.

    Those after `--` are surely the script's.
    """
    command = click.get_current_context().command
    own = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    before = args[: args.index("--")] if "--" in args else args
    meant = [name for arg in before if (name := arg.partition("=")[0]) in own]
    if meant:
        say(
            f"note: {', '.join(dict.fromkeys(meant))} went to {script}, like everything after it. "
            f"Options of syncscan must come before it: syncscan {command.name} {meant[0]} … {script}"
        )
