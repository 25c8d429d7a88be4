"""Read the pages of rules and habits: a header of short texts, and Markdown under headings.

A page is read when a finding, a habit or a reader first needs it: an analysis reads those of the rules that fired.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from syncscan.model import race
from syncscan.model.finding import Cause
from syncscan.model.habit import Advice, Area
from syncscan.model.race import RaceKind
from syncscan.model.rule_doc import RuleDoc

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
        why=_plain(sections[WHY_OF_HABIT]),
        when_fine=_plain(sections[WHEN_FINE]),
        subject=header.get("subject", ""),
    )


@cache
def advice_of(habit: str, variant: str = "") -> Advice:
    """Return the texts of a habit's page in the form in which a report shows them."""
    page = habit_page(habit)
    title, fix, do = page.titles[variant], page.fixes[variant], page.dos[variant]
    return Advice(page.id, Area(page.cause), title, page.why, fix, page.when_fine, do)


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


__all__ = ["HABIT_HEADINGS", "SYNC_HEADINGS", "advice_of", "habit_page", "sync_page"]
