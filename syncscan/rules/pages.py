"""Read the pages of rules and habits, find one by a name, and write it: a header of short texts, then Markdown.

A page is read when a finding, a habit or a reader first needs it: an analysis reads those of the rules that fired.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from syncscan.errors import UsageError
from syncscan.model import race
from syncscan.model.finding import Cause
from syncscan.model.habit import Area
from syncscan.model.race import RaceKind


class RuleDoc(msgspec.Struct, frozen=True):
    """Documentation of a rule; the summary and the sections are Markdown."""

    id: str
    name: str
    cause: Cause | Area
    """Class of its findings: why a sync waits, or the part of a step that a habit belongs to."""
    summary: str
    sections: Mapping[str, str]
    titles: Mapping[str, str]
    """Titles of its findings, with fields such as `{op}`, by variant: "" for calls without a title of their own."""
    fixes: Mapping[str, str]
    """Texts on what to write instead, by variant."""
    dos: Mapping[str, str]
    """Those texts in one imperative line, by variant."""
    replacements: Mapping[str, str]
    """The work that each puts in the op's place, by variant; see `Replacement`."""
    why: str
    """Why it costs time, as a finding says it: in plain text."""
    when_fine: str
    """When to leave the code as it is, as a finding says it."""
    subject: str = ""
    """The thing that a habit's change is about, where a first screen has no line: `the DataLoader`; else empty."""

    @property
    def of_habit(self) -> bool:
        """Return whether the rule finds habits rather than syncs."""
        return isinstance(self.cause, Area)

    def code(self, heading: str) -> str:
        """Return the Python code block of this section; empty without one."""
        block = _CODE.search(self.sections.get(heading, ""))
        return block.group(1) if block else ""


_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


FOLDER = Path(__file__).parent

WHY, INSTEAD, WHEN_FINE = "Why it stalls", "Use instead", "When it is fine"
"""Headings of a sync's page whose texts or code other parts of the package read."""
WHY_OF_HABIT = "Why it matters"

SYNC_HEADINGS = (
    "What it finds",
    WHY,
    "How it shows in the trace",
    "Example",
    INSTEAD,
    WHEN_FINE,
    "Versions",
    "References",
)
"""Headings of every sync rule's page, in order."""
HABIT_HEADINGS = (
    "What it finds",
    WHY_OF_HABIT,
    "How it shows in the trace",
    "Example",
    INSTEAD,
    "What it would save",
    WHEN_FINE,
    "References",
)
"""Headings of every habit's page, in order."""
_AFTER_RACE = {"Versions", "What it would save"}
"""The race that advice can bring in (`race` in the header) is explained before the first of these."""


@cache
def sync_page(id: str) -> RuleDoc:
    """Return the page of a rule that names syncs, `syncs/ID.md`."""
    header, summary, sections = _read(FOLDER / "syncs" / f"{id}.md")
    return RuleDoc(
        id=header["id"],
        name=header["name"],
        cause=Cause(header["cause"]),
        summary=summary,
        sections=dict(_with_race(sections, header)),
        titles=_variants("title", header),
        fixes=_variants("fix", header),
        dos=_variants("do", header),
        replacements=_variants("replacement", header),
        why=_plain(sections[WHY]),
        when_fine=_plain(sections[WHEN_FINE]),
    )


@cache
def habit_page(id: str) -> RuleDoc:
    """Return the page of a habit, `habits/ID.md`; its fix stands before the code under `Use instead`."""
    header, summary, sections = _read(FOLDER / "habits" / f"{id}.md")
    advice = {INSTEAD: f"{header['fix']}\n\n{sections[INSTEAD]}"}
    return RuleDoc(
        id=header["id"],
        name=header["name"],
        cause=Area(header["area"]),
        summary=summary,
        sections=dict(_with_race(sections | advice, header)),
        titles={"": header["name"], **_variants("title", header)},
        fixes=_variants("fix", header),
        dos=_variants("do", header),
        replacements={},
        why=_plain(sections[WHY_OF_HABIT]),
        when_fine=_plain(sections[WHEN_FINE]),
        subject=header.get("subject", ""),
    )


_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def _read(page: Path) -> tuple[dict[str, str], str, dict[str, str]]:
    """Return a page's header, its first paragraph on one line, and the text of each heading."""
    _, header, body = page.read_text(encoding="utf-8").split("---\n", 2)
    summary, *rest = _HEADING.split(body)
    sections = {title: text.strip() for title, text in zip(rest[::2], rest[1::2], strict=True)}
    return _entries(header), " ".join(summary.split()), sections


def _entries(header: str) -> dict[str, str]:
    """Return the `key: text` lines of a header; indented lines after `key: >` are one text, as in YAML."""
    entries: dict[str, str] = {}
    key = ""
    for line in header.splitlines():
        if line.startswith(" "):
            entries[key] = f"{entries[key]} {line.strip()}".lstrip()
        else:
            key, _, text = line.partition(":")
            entries[key] = text.strip().removeprefix(">")
    return entries


def _variants(kind: str, header: dict[str, str]) -> dict[str, str]:
    """Return the texts called `title`, `title.table`, … by what follows the dot."""
    named = {key.partition(".")[::2]: text for key, text in header.items()}
    return {variant: text for (key, variant), text in named.items() if key == kind}


def _with_race(sections: dict[str, str], header: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a page's sections, with one on the race that its advice can bring in."""
    for title, text in sections.items():
        if title in _AFTER_RACE and "race" in header:
            yield race.HEADING, race.section(RaceKind(header["race"]))
        yield title, text


def _plain(text: str) -> str:
    """Return the first paragraph as plain text on one line."""
    return " ".join(text.partition("\n\n")[0].replace("`", "").split())


_HASH = re.compile(r"-[0-9a-f]{8}$")
"""Suffix of a finding's or habit's id, after the rule's id."""
MENTIONED = 6
"""Most rules that a hint names because their pages have the words asked for."""


def named_page(name: str, documents: Iterable[RuleDoc]) -> RuleDoc:
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
    import difflib

    close = difflib.get_close_matches(wanted, rules, 3, 0.6)
    if others := [id for id in mentioning(name, rules.values()) if id not in close][:MENTIONED]:
        named = f"Did you mean {' or '.join(close)}? " if close else ""
        return f"{named}Rules that mention it: {', '.join(others)}."
    return f"Did you mean {' or '.join(close)}?" if close else "syncscan explain lists them."


def markdown(doc: RuleDoc, preamble: str) -> str:
    """Return the page of a rule as Markdown; `preamble` is the code that its examples need."""
    of = f"Part of the step: {doc.cause.value}" if doc.of_habit else f"Cause: {doc.cause.value}"
    head = f"# {doc.id}: {doc.name}\n\n{doc.summary} {of}.\n"
    sections = [f"\n## {title}\n\n{body}\n" for title, body in doc.sections.items()]
    foot = f"\n## Setup for the examples\n\n```python\n{preamble}```\n"
    return "".join([head, *sections, foot if preamble else ""])
