"""Describe lint warnings: in words, with each rule's fix once; for CI servers, a line each; and as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any

from syncscan.lint.warning import LIMITS, AllowedWarning, LintResult, LintWarning
from syncscan.model.finding import Confidence, Severity
from syncscan.model.json_text import Document, about, indented, written
from syncscan.report.blocks import Block, Heading, Item, Items, Look, Sentence, Span, code, place
from syncscan.report.flagged import FilePosition, Flagged, FlaggedLine
from syncscan.report.phrases import sentences
from syncscan.version import __version__

_LOOKS: dict[Severity, Look] = {Severity.MEDIUM: "warn", Severity.LOW: "dim"}


def blocks(linted: LintResult) -> Iterator[Block]:
    yield Heading(verdict(linted), 1)
    if linted.warnings:
        yield Items(tuple(map(_item, linted.warnings)), most=len(linted.warnings))
        fixes = sorted({(g.rule, g.fix) for g in linted.warnings})
        yield Heading("What to write instead (for details: syncscan explain RULE):")
        yield Items(tuple(Item((code(rule), f": {fix}")) for rule, fix in fixes))
    for sentence in (*beside(linted), LIMITS):
        yield Sentence(sentence, "dim")


def _item(warning: LintWarning) -> Item:
    severity = Span(warning.severity.value, _LOOKS.get(warning.severity, ""))
    head = (place(str(warning.source)), ": ", severity, f" [{warning.rule}] {warning.title}")
    scope = f" Scope {' › '.join(warning.scope)}." if warning.scope else ""
    unsure = f" ({doubt(warning)})" if doubt(warning) else ""
    return Item(head, (code(warning.source.code), f"{warning.because}{scope}{unsure}"))


def verdict(linted: LintResult) -> str:
    count, files = len(linted.warnings), len(linted.shown_files)
    if not count:
        return f"No possible syncs in {_count_text(linted.files, 'file')}."
    low = sum(g.severity is Severity.LOW for g in linted.warnings)
    seldom = f"; {low} run{'s' * (low == 1)} rarely" if low else ""
    return f"{_count_text(count, 'possible sync')} in {files} of {_count_text(linted.files, 'file')}{seldom}."


def beside(linted: LintResult) -> list[str]:
    allowed, hidden, unread = len(linted.allowed), linted.hidden, len(linted.unread)
    sentences = (
        (allowed, f"{_count_text(allowed, 'warning')} allowed by comments, blocks or the allow-list."),
        (hidden, f"{_count_text(hidden, 'warning')} hidden by --select or --ignore."),
        (unread, f"{_count_text(unread, 'file')} couldn't be read."),
    )
    return [sentence for count, sentence in sentences if count]


def doubt(warning: LintWarning) -> str:
    """Return why a lint warning is less certain than others; empty where it isn't."""
    return "it may not read a tensor" if warning.confidence is Confidence.LOW else ""


def _count_text(count: int, one: str) -> str:
    return f"{count:,} {one}{'s' * (count != 1)}"


COLUMNS = (
    "rule", "cause", "severity", "confidence", "file", "cell", "line", "column", "function", "scope", "code", "place",
    "because", "title", "fix",
)  # fmt: skip


def flagged_warnings(linted: LintResult) -> Flagged:
    met = (("note", LIMITS), *(("warning", text) for text in (*linted.unread, *linted.notes)))
    return Flagged(
        tool="syncscan lint",
        lines=tuple(_line(warning) for warning in linted.warnings),
        columns=COLUMNS,
        closing=(verdict(linted), *beside(linted), LIMITS),
        notifications=met,
        failed=linted.unread_named,
    )


def _line(g: LintWarning) -> FlaggedLine:
    at = g.source
    known_by = "\0".join((g.rule, at.function, at.code)).encode("utf-8", "replace")
    return FlaggedLine(
        rule=g.rule,
        severity=g.severity,
        title=f"possible sync: {g.title}",
        message=sentences(at.code, g.because, doubt(g), g.fix, f"Rule {g.rule}"),
        place=FilePosition(at.file, at.line, at.column, at.end_line),
        rule_name=g.name,
        rule_help=f"{g.fix} Fine: {g.when_fine}",
        tags=("performance", g.cause.value.lower()),
        summary=sentences(f"Possible sync: {g.title}", g.because, doubt(g), g.fix),
        inside=(at.function, "function") if at.function else None,
        fingerprints={"syncscanGuess/v1": hashlib.sha256(known_by).hexdigest()[:16]},
        figures={"guess": True, "cause": g.cause.value, "confidence": g.confidence.value},
        rows=(_row(g),),
    )


def _row(g: LintWarning) -> dict[str, Any]:
    at, judged = g.source, (g.rule, g.cause.value, g.severity.value, g.confidence.value)
    stands = (at.file, at.cell, at.line, at.column, at.function, " > ".join(g.scope), at.code, g.place)
    return dict(zip(COLUMNS, (*judged, *stands, g.because, g.title, g.fix), strict=True))


SCHEMA = "syncscan.lint/1"


class LintDocument(Document, frozen=True):
    """Lint warnings, from the source alone."""

    limits: str
    files: Annotated[int, about("number of files read")]
    guesses: tuple[LintWarning, ...]
    allowed: tuple[AllowedWarning, ...]
    hidden: Annotated[int, about("number hidden by --select and --ignore")]
    notes: tuple[str, ...]
    unread: Annotated[tuple[str, ...], about("files that couldn't be read, one sentence each")]


def render(linted: LintResult) -> str:
    """Return the lint warnings as indented JSON, with the keys of findings where they apply."""
    document = written(
        LintDocument,
        linted,
        schema=SCHEMA,
        syncscan=__version__,
        limits=LIMITS,
        guesses=linted.warnings,
    )
    return indented(document) + "\n"
