"""Options that choose how a result is shown and where it goes, shared by every command that writes a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from syncscan.cli.by_name import format_by_name

Command = Callable[..., Any]

verbose = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="List every row, with why each one waits, what to do about it, and when to leave it alone.",
)


def result_options(
    formats: Sequence[str],
    *,
    form: str = "Report format.",
    output: str = "Write the report to FILE instead of stdout, in the format of its name.",
    force: str = "Replace FILE if it exists.",
) -> Callable[[Command], Command]:
    """Add `--format`, `-o` and `--force` to a command, which gets them as `form`, `output` and `force`.

    Args:
        formats: those that the command writes, the default first.
        form: help of `--format`.
        output: help of `-o`.
        force: help of `--force`.
    """

    def added(command: Command) -> Command:
        chosen = format_by_name(formats)(command)
        in_file = click.option("-o", "--output", metavar="FILE", help=output)
        replacing = click.option("--force", is_flag=True, help=force)
        shown = click.option(
            "--format", "form", type=click.Choice(formats), default=formats[0], show_default=True, help=form
        )
        return shown(in_file(replacing(chosen)))

    return added
