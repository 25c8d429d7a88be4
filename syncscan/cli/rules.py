"""`syncscan rules`: list all rules on stdout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from syncscan.api import RuleDoc


@click.command("rules")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(form: str) -> None:
    """List the rules for syncs (the first match wins) and for other costs."""
    from syncscan import api

    click.echo(_RENDERERS[form](api.rules(), api.habit_rules()))


def _text(rules: Sequence[RuleDoc], habits: Sequence[RuleDoc]) -> str:
    width = max(len(rule.id) for rule in (*rules, *habits))
    foot = f"{len(rules)} rules and {len(habits)} habits. For details: syncscan explain {rules[0].id}"
    return "\n".join([*_lines(rules, width), "", "Other costs:", "", *_lines(habits, width), "", foot])


def _lines(rules: Sequence[RuleDoc], width: int) -> list[str]:
    return [f"{rule.id:{width}}  {rule.cause.value:8}  {rule.name}" for rule in rules]


def _json(rules: Sequence[RuleDoc], habits: Sequence[RuleDoc]) -> str:
    from syncscan.report import rules_json

    return rules_json.render(rules, habits)


def _markdown(rules: Sequence[RuleDoc], habits: Sequence[RuleDoc]) -> str:
    return "\n".join([*_table(rules, "rule", "cause"), "", *_table(habits, "habit", "part of the step")])


def _table(rules: Sequence[RuleDoc], what: str, of: str) -> list[str]:
    rows = [f"| `{rule.id}` | {rule.cause.value} | {rule.summary} |" for rule in rules]
    return [f"| {what} | {of} | what it finds |", "|---|---|---|", *rows]


_RENDERERS: dict[str, Callable[[Sequence[RuleDoc], Sequence[RuleDoc]], str]] = {
    "text": _text,
    "json": _json,
    "markdown": _markdown,
}
