"""From the rules, the commands and the schemas to the pages of the reference, as Markdown files for Sphinx."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from syncscan import api, features
from syncscan.api import RuleDoc
from syncscan.cli import all_commands, group
from syncscan.fixing.rewrites import REWRITES

PACKAGE = Path(__file__).parent.parent / "syncscan"
DOCS = Path(__file__).parent
EXAMPLES = DOCS / "examples"
EXAMPLES_SHOWN = 5
"""Most examples on a command's page."""


def write(folder: Path) -> None:
    """All pages below a folder; what is already as it should be isn't written again, so that Sphinx keeps it."""
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Name below the folder → the page."""
    rewrites = {"tables/rewrites.md": "\n".join(_rewrite_table()) + "\n"}
    return dict([*_rule_pages(), *_command_pages(), *_schema_pages()]) | rewrites


def _rule_pages() -> Iterator[tuple[str, str]]:
    for folder, rules in (("rules", api.rules()), ("habits", api.habit_rules())):
        for rule in rules:
            yield f"{folder}/{rule.id}.md", api.explanation(rule.id) + _notes(rule.id)
        yield f"tables/{folder}.md", "\n".join(_rule_table(folder, rules)) + "\n"


def _notes(rule: str) -> str:
    return "".join(notes(rule) for notes in features.offered("rule_notes"))


def _rule_table(folder: str, rules: Iterable[RuleDoc]) -> Iterator[str]:
    yield "| rule | class | what it finds |" if folder == "rules" else "| habit | part of the step | what it finds |"
    yield "|---|---|---|"
    for rule in rules:
        yield f"| [`{rule.id}`](/generated/{folder}/{rule.id}.md) | {rule.cause.value} | {rule.summary} |"


def _rewrite_table() -> Iterator[str]:
    yield from ("| rewrite | safety | pattern |", "|---|---|---|")
    for rewrite in REWRITES:
        yield f"| `{rewrite.id}` | {rewrite.safety.value} | {rewrite.title} |"


def _command_pages() -> Iterator[tuple[str, str]]:
    for name in all_commands():
        yield f"commands/{name}.md", _command_page(name)
    rows = [f"| [`syncscan {name}`](/generated/commands/{name}.md) | {line} |" for name, line in all_commands().items()]
    yield "tables/commands.md", "\n".join(["| command | |", "|---|---|", *rows, ""])


def _command_page(name: str) -> str:
    with click.Context(group, info_name="syncscan") as parent:
        command = group.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
    records = [found for one in command.params if (found := one.get_help_record(context)) and found[1]]
    rows = [f"| {_code(term)} | {_cell(text)} |" for term, text in records]
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    table = ["", "| option | meaning |", "|---|---|", *rows] if rows else []
    head = [f"# syncscan {name}", "", f"```text\n{usage}\n```", "", _help(command)]
    return "\n".join([*head, *_examples(name), *table, ""])


def _examples(command: str) -> list[str]:
    """Return a section with the lines that run a command in README and docs, and links to their pages."""
    lines: dict[str, None] = {}
    pages: dict[str, None] = {}
    for page in (DOCS / "index.md", DOCS / "tutorial.md", *sorted(DOCS.glob("howto/*.md"))):
        text = page.read_text(encoding="utf-8")
        typed = re.findall(rf"^(?:\$ )?(syncscan {command}(?: .*?)?)(?: +#.*)?$", text, re.MULTILINE)
        lines |= dict.fromkeys(typed)
        if typed:
            title = re.search(r"^# (.+)$", text, re.MULTILINE)
            pages[f"[{title[1] if title else page.stem}](/{page.relative_to(DOCS).as_posix()})"] = None
    if not lines:
        return []
    shown = [f"$ {line}" for line in list(lines)[:EXAMPLES_SHOWN]]
    return ["", "```console", *shown, "```", "", f"Explained in {', '.join(pages)}.", ""]


def _help(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "")


def _code(term: str) -> str:
    return f"`{_cell(term)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _schema_pages() -> Iterator[tuple[str, str]]:
    files = {path.stem: path for path in (*PACKAGE.glob("schemas/*.json"), *PACKAGE.glob("*/schemas/*.json"))}
    found = {name: json.loads(files[name].read_text(encoding="utf-8")) for name in sorted(files)}
    for name, schema in found.items():
        yield f"schemas/{name}.md", _schema_page(name, files[name], schema)
    rows = [f"| [`{s['title']}`](/generated/schemas/{name}.md) | {s['description']} |" for name, s in found.items()]
    yield "tables/schemas.md", "\n".join(["| schema | |", "|---|---|", *rows, ""])


def _schema_page(name: str, file: Path, schema: Mapping[str, Any]) -> str:
    parts = [
        f"# {schema['title']}",
        f"{schema['description']}",
        f"The file is `syncscan/{file.relative_to(PACKAGE).as_posix()}` of the package (`{schema['$id']}`).",
        "\n".join(_keys(schema)),
    ]
    example = EXAMPLES / f"{name}.json"
    if example.exists():
        parts += ["## Example", f"```{{literalinclude}} /examples/{name}.json\n:language: json\n```"]
    return "\n\n".join(parts) + "\n"


def _keys(schema: Mapping[str, Any]) -> Iterator[str]:
    yield "| key | type | |"
    yield "|---|---|---|"
    yield from _rows(schema, schema.get("$defs", {}), "", ())


def _rows(of: Mapping[str, Any], defs: Mapping[str, Any], prefix: str, within: tuple[str, ...]) -> Iterator[str]:
    for key, value in of.get("properties", {}).items():
        about = value.get("description", "").replace("|", "\\|")
        yield f"| `{prefix}{key}` | {type_of(value)} | {about} |"
        for mark, name in _inner(value):
            if name not in within:
                yield from _rows(defs[name], defs, f"{prefix}{key}{mark}.", (*within, name))


def _inner(value: Mapping[str, Any], mark: str = "") -> Iterator[tuple[str, str]]:
    """Yield the definitions that contain a value's keys, each with the suffix of the key."""
    if "$ref" in value:
        yield mark, value["$ref"].rpartition("/")[2]
    for part in (*value.get("anyOf", ()), *value.get("allOf", ())):
        yield from _inner(part, mark)
    if isinstance(value.get("items"), dict):
        yield from _inner(value["items"], mark + "[]")


def type_of(value: Mapping[str, Any]) -> str:
    """Return the type of a value in a schema, in words."""
    if "$ref" in value:
        return "object"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{one}`" if one is not None else "null" for one in value["enum"])
    if "anyOf" in value or "allOf" in value:
        return " or ".join(dict.fromkeys(type_of(part) for part in (*value.get("anyOf", ()), *value.get("allOf", ()))))
    if value.get("type") == "array":
        return f"list of {type_of(value['items'])}" if isinstance(value.get("items"), dict) else "list"
    kind = value.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
