"""`syncscan explain NAME [TRACE]`: print the page of a rule, a finding or a habit."""

from __future__ import annotations

import os
import re

import click

from syncscan.cli.analysis_options import AnalysisOptions, options
from syncscan.cli.fixes_option import option, with_suggestions
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import warn
from syncscan.cli.stdout import colors, width
from syncscan.errors import UsageError


@click.command("explain")
@click.argument("name")
@click.argument("trace", required=False)
@click.option("--format", "form", type=click.Choice(["text", "markdown"]), default="text", show_default=True)
@option
@options
@needs(
    *(
        Need(name, "trace")
        for name in ("fixes", "step_ms", "step_scope", "steps", "process", "source_root", "max_memory", "cache")
    )
)
def command(name: str, trace: str | None, form: str, fixes: str | None, analysis_options: AnalysisOptions) -> None:
    """Explain NAME: what it finds, why it costs time, how it looks in a trace, what to use instead, when it is fine.

    NAME is the id of a rule, habit or finding from `syncscan rules` or a report; an unambiguous prefix is enough, such
    as boolean-i. With TRACE, NAME can also be a number from the report's list, and its measurements are shown first.
    """
    if os.path.isfile(name):  # noqa: PTH113 - Path.is_file raises for names that are too long
        raise UsageError(f"{name} is a file; the name to explain comes first.", f"syncscan explain {trace or 1} {name}")
    from syncscan import api

    analysis = with_suggestions(analysis_options.analysis_of(trace), fixes) if trace is not None else None
    warn(analysis.warnings if analysis else ())
    text = api.explanation(name, analysis)
    text += _fixes(text)
    click.echo(_render(text) if form == "text" and colors() else text, nl=False)


def _fixes(page: str) -> str:
    """Return the section about `syncscan fix` for the rule that a page is about."""
    from syncscan.fixing.rule_notes import section

    heading = re.search(r"^# ([\w-]+): ", page, re.M)
    return section(heading[1]) if heading else ""


def _render(markdown: str) -> str:
    """Return the page with headings and highlighted code as wide as the terminal; as Markdown without a terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=min(width(), 100), force_terminal=True, highlight=False)
    with console.capture() as captured:
        console.print(Markdown(markdown, code_theme="ansi_dark"))
    return captured.get()
