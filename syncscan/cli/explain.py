"""`syncscan explain [NAME] [TRACE]`: print the page of a rule, a finding or a habit; without a name, list them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from syncscan.cli.output import colors, warn, width
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.api import RuleDoc


@click.command("explain")
@click.argument("name", required=False)
@click.argument("trace", required=False)
def command(name: str | None, trace: str | None) -> None:
    """Explain NAME: what it finds, why it costs time, how it looks in a trace, what to use instead, when it is fine.

    NAME is the id of a rule, habit or finding; an unambiguous prefix is enough, such as boolean-i. With TRACE, NAME can
    also be a number from the report's list, and its measurements are shown first. Without NAME, all rules for syncs
    (the first match wins) and for other costs are listed.
    """
    if name is None:
        click.echo(_list())
        return
    if os.path.isfile(name):  # noqa: PTH113 - Path.is_file raises for names that are too long
        raise UsageError(f"{name} is a file; the name to explain comes first.", f"syncscan explain {trace or 1} {name}")
    text = _page(name, trace)
    click.echo(_render(text) if colors() else text, nl=False)


def _list() -> str:
    from syncscan import api

    rules, habits = api.rules(), api.habit_rules()
    longest = max(len(rule.id) for rule in (*rules, *habits))
    foot = f"{len(rules)} rules and {len(habits)} habits. For details: syncscan explain {rules[0].id}"
    return "\n".join([*_lines(rules, longest), "", "Other costs:", "", *_lines(habits, longest), "", foot])


def _lines(rules: Sequence[RuleDoc], longest: int) -> list[str]:
    return [f"{rule.id:{longest}}  {rule.cause.value:8}  {rule.name}" for rule in rules]


def _page(name: str, trace: str | None) -> str:
    """Return the page as Markdown, with what rooms say about its rule."""
    from syncscan import api, features
    from syncscan.cli.analysis_options import AnalysisOptions

    analysis = AnalysisOptions().analysis_of(trace) if trace is not None else None
    warn(analysis.warnings if analysis else ())
    text = api.explanation(name, analysis)
    heading = re.search(r"^# ([\w-]+): ", text, re.M)
    return text + "".join(notes(heading[1]) for notes in features.offered("rule_notes") if heading)


def _render(markdown: str) -> str:
    """Return the page with headings and highlighted code, as wide as the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=min(width(), 100), force_terminal=True, highlight=False)
    with console.capture() as captured:
        console.print(Markdown(markdown, code_theme="ansi_dark"))
    return captured.get()
