"""Find the rule that a name means, and render its page as Markdown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from syncscan.errors import UsageError
from syncscan.model.rule_doc import RuleDoc

_HASH = re.compile(r"-[0-9a-f]{8}$")
"""Suffix of a finding's or habit's id, after the rule's id."""
MENTIONED = 6
"""Most rules that a hint names because their pages have the words asked for."""


def find(name: str, documents: Iterable[RuleDoc]) -> RuleDoc:
    """Return the documentation of a rule named by its id, a unique prefix of it, or the id of a finding."""
    rules = {document.id: document for document in documents}
    if name.isdecimal():
        why = f"{name} is a number in a report, but no trace was given."
        raise UsageError(why, f"Add the trace: syncscan explain {name} TRACE.")
    wanted = _HASH.sub("", name.lower().replace("_", "-").removeprefix("aten::"))
    if wanted in rules:
        return rules[wanted]
    begun = [id for id in rules if wanted and id.startswith(wanted)]
    if len(begun) == 1:
        return rules[begun[0]]
    if begun:
        raise UsageError(f"{len(begun)} rules begin with '{name}'.", f"It can be {', '.join(begun)}.")
    raise UsageError(f"There is no rule '{name}'.", _hint(name, wanted, rules))


def mentioning(words: str, documents: Iterable[RuleDoc]) -> list[str]:
    """Return the ids of the rules whose pages have all these words, in any case, those with most occurrences first."""
    wanted = words.casefold().split()
    texts = {doc.id: "\n".join([doc.id, doc.name, doc.summary, *doc.sections.values()]).casefold() for doc in documents}
    often = {id: sum(map(text.count, wanted)) for id, text in texts.items() if all(word in text for word in wanted)}
    return sorted(often, key=lambda id: -often[id]) if wanted else []


def _hint(name: str, wanted: str, rules: Mapping[str, RuleDoc]) -> str:
    """Return which rules can be meant: of a cause, nearly called so, or with these words on their pages."""
    if of_cause := [id for id, doc in rules.items() if doc.cause.value.casefold() == name.casefold()]:
        return f"It is a cause; its rules are {', '.join(of_cause)}."
    close = difflib.get_close_matches(wanted, rules, 3, 0.6)
    if others := [id for id in mentioning(name, rules.values()) if id not in close][:MENTIONED]:
        named = f"Did you mean {' or '.join(close)}? " if close else ""
        return f"{named}Rules that mention it: {', '.join(others)}."
    return f"Did you mean {' or '.join(close)}?" if close else "syncscan explain lists them."


def render(doc: RuleDoc, preamble: str) -> str:
    """Return the page of a rule as Markdown; `preamble` is the code that its examples need."""
    of = f"Part of the step: {doc.cause.value}" if doc.of_habit else f"Cause: {doc.cause.value}"
    head = f"# {doc.id}: {doc.name}\n\n{doc.summary} {of}.\n"
    sections = [f"\n## {title}\n\n{body}\n" for title, body in doc.sections.items()]
    foot = f"\n## Setup for the examples\n\n```python\n{preamble}```\n"
    return "".join([head, *sections, foot if preamble else ""])
