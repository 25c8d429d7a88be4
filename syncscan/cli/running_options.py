"""Options that choose how a program of the user's is run, shared by every command that runs one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

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
