"""`syncscan rules`: from the catalogue of rules to a list on stdout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from syncscan.api import RuleDoc


@click.command("rules")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(form: str) -> None:
    """List the rules in the order in which they are asked: the first that fits names a sync point."""
    from syncscan import api

    render = {"text": _text, "json": _json, "markdown": _markdown}[form]
    click.echo(render(api.rules()))


def _text(rules: tuple[RuleDoc, ...]) -> str:
    width = max(len(rule.id) for rule in rules)
    lines = [f"{rule.id:{width}}  {rule.cause.value:8}  {rule.name}" for rule in rules]
    return "\n".join([*lines, "", f"{len(rules)} rules. One of them in full: syncscan explain {rules[0].id}"])


def _json(rules: tuple[RuleDoc, ...]) -> str:
    entries = [
        {"id": r.id, "name": r.name, "cause": r.cause.value, "summary": r.summary, "sections": dict(r.sections)}
        for r in rules
    ]
    return json.dumps({"schema": "syncscan.rules/1", "rules": entries}, indent=1, ensure_ascii=False)


def _markdown(rules: tuple[RuleDoc, ...]) -> str:
    rows = [f"| `{rule.id}` | {rule.cause.value} | {rule.summary} |" for rule in rules]
    return "\n".join(["| rule | cause | what it finds |", "|---|---|---|", *rows])
