"""`syncscan explain NAME [TRACE]`: from the name of a rule, a finding or a habit to what there is to read about it."""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING

import click

from syncscan.cli.asked import Asked, options
from syncscan.cli.needs import Need, needs
from syncscan.cli.output import warn
from syncscan.cli.terminal import colors, width
from syncscan.errors import UsageError

if TYPE_CHECKING:
    from syncscan.api import RuleDoc

_HASH = re.compile(r"-[0-9a-f]{8}$")
"""What an id of a finding or a habit has behind its rule's."""


@click.command("explain")
@click.argument("name")
@click.argument("trace", required=False)
@click.option("--format", "form", type=click.Choice(["text", "markdown"]), default="text", show_default=True)
@options
@needs(
    *(Need(option, "trace") for option in ("step_ms", "step_scope", "steps", "process", "source_root", "max_memory"))
)
def command(name: str, trace: str | None, form: str, asked: Asked) -> None:
    """Explain NAME: what it finds, why that costs time, how it shows in a trace, what to use instead, when to leave it.

    NAME is an id from `syncscan rules` or from a report, of a sync's rule, of a habit, of a finding; its beginning does
    where that is enough, e.g. boolean-i. With TRACE it is also a number of the report's list, and what was measured
    there comes first.
    """
    if os.path.isfile(name):  # noqa: PTH113 - Path.is_file raises for names that are too long
        raise UsageError(f"{name} is a file: what to explain comes first.", f"syncscan explain {trace or 1} {name}")
    text = _of_rule(name) if trace is None else _of_trace(name, trace, asked)
    click.echo(_rendered(text) if form == "text" and colors() else text, nl=False)


def _of_trace(name: str, trace: str, asked: Asked) -> str:
    from syncscan.report import evidence
    from syncscan.report.named import named

    analysis = asked.analysis_of(trace)
    warn(analysis.warnings)
    rules = dict.fromkeys(part.rule for part in named(analysis, name))
    return "\n".join([evidence.of_named(analysis, name), *map(_of_rule, rules)])


def _of_rule(name: str) -> str:
    from syncscan import api

    doc = _find(name, {rule.id: rule for rule in (*api.rules(), *api.habit_rules())})
    return _markdown(doc, api.preamble_of(doc))


def _find(name: str, rules: dict[str, RuleDoc]) -> RuleDoc:
    if name.isdecimal():
        why = f"{name} is a number of a report's list, and no trace is given."
        raise UsageError(why, f"Name it too: syncscan explain {name} TRACE.")
    wanted = _HASH.sub("", name.lower().replace("_", "-").removeprefix("aten::"))
    if wanted in rules:
        return rules[wanted]
    begun = [id for id in rules if wanted and id.startswith(wanted)]
    if len(begun) == 1:
        return rules[begun[0]]
    if begun:
        raise UsageError(f"{len(begun)} rules begin with '{name}'.", f"It can be {', '.join(begun)}.")
    close = difflib.get_close_matches(wanted, rules, 3, 0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else "syncscan rules lists them."
    raise UsageError(f"There is no rule '{name}'.", hint)


def _markdown(doc: RuleDoc, preamble: str) -> str:
    summary = doc.summary or "(Python's -OO has dropped the documentation.)"
    of = f"Part of the step: {doc.cause.value}" if doc.of_habit else f"Cause: {doc.cause.value}"
    head = f"# {doc.id}: {doc.name}\n\n{summary} {of}.\n"
    sections = [f"\n## {title}\n\n{body}\n" for title, body in doc.sections.items()]
    foot = f"\n## What the examples stand on\n\n```python\n{preamble}```\n"
    return "".join([head, *sections, foot if preamble else ""])


def _rendered(markdown: str) -> str:
    """With headings and highlighted code, as wide as the terminal; without one Markdown reads better as it is."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=min(width(), 100), force_terminal=True, highlight=False)
    with console.capture() as captured:
        console.print(Markdown(markdown, code_theme="ansi_dark"))
    return captured.get()
