"""`syncscan explain RULE`: from a rule's name to its documentation on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from syncscan.cli.terminal import colors, width
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.api import RuleDoc


@click.command("explain")
@click.argument("rule")
@click.option("--format", "form", type=click.Choice(["text", "markdown"]), default="text", show_default=True)
def command(rule: str, form: str) -> None:
    """Explain RULE: what it finds, why that stalls, how it shows in a trace, what to use instead, when to leave it.

    RULE is an id from `syncscan rules` or from a report, e.g. boolean-index.
    """
    from syncscan import api

    doc = _find(rule, api.rules())
    text = _markdown(doc, api.PREAMBLE)
    click.echo(_rendered(text) if form == "text" and colors() else text, nl=False)


def _find(name: str, rules: tuple[RuleDoc, ...]) -> RuleDoc:
    import difflib

    wanted = name.lower().replace("_", "-").removeprefix("aten::")
    by_id = {rule.id: rule for rule in rules}
    if wanted in by_id:
        return by_id[wanted]
    close = difflib.get_close_matches(wanted, by_id, 3, 0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else "syncscan rules lists them."
    raise UsageError(f"There is no rule {name}.", hint)


def _markdown(doc: RuleDoc, preamble: str) -> str:
    summary = doc.summary or "(Python's -OO has dropped the documentation.)"
    head = f"# {doc.id}: {doc.name}\n\n{summary} Cause: {doc.cause.value}.\n"
    sections = [f"\n## {title}\n\n{body}\n" for title, body in doc.sections.items()]
    foot = f"\n## What the examples stand on\n\n```python\n{preamble}```\n"
    return "".join([head, *sections, foot if doc.code("Example") else ""])


def _rendered(markdown: str) -> str:
    """With headings and highlighted code, as wide as the terminal; without one Markdown reads better as it is."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=min(width(), 100), force_terminal=True, highlight=False)
    with console.capture() as captured:
        console.print(Markdown(markdown, code_theme="ansi_dark"))
    return captured.get()
