"""Options that choose how a result is shown and where it goes, shared by every command that writes a report."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

import click

from syncscan.cli.needs import given
from syncscan.errors import UsageError

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

    `form`, `output` and `force` are the options' help; the default format comes first.
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


SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".md": "markdown",
    ".csv": "csv",
    ".sarif": "sarif",
    ".xml": "junit",
    ".svg": "svg",
}
"""Suffix → format."""
_SAVED = (".syncscan.json", ".syncscan.json.gz", ".fleet.json", ".fleet.json.gz")
"""Names of saved analyses and jobs, whose commands look at the name themselves."""


_NO_TEXT = {".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".xls", ".xlsx", ".doc", ".docx", ".pptx", ".zip"}
"""Suffixes of files that no format makes, and that no program would open if text were written to them."""


def format_by_name(formats: Sequence[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have `-o NAME.html` mean `--format html`; to be applied above `needs`."""

    def choosing(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def chosen(**arguments: Any) -> Any:
            context = click.get_current_context()
            output = arguments["output"] or ""
            if not output.endswith(_SAVED) and not given(context, "form"):
                suffix = PurePath(output).suffix.lower()
                form, reason = SUFFIXES.get(suffix, ""), ""
                if suffix in _NO_TEXT:
                    reason = f"{output}: no format of this command is for {suffix} files."
                elif form and form not in formats:
                    reason = f"{output} is a file name for {form}, which this command can't write."
                if reason:
                    raise UsageError(reason, f"Choose another name, or --format {', '.join(formats)}.")
                if form:
                    arguments["form"] = context.params["form"] = form
            return command(**arguments)

        return chosen

    return choosing
