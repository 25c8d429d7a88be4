"""Describe lint warnings: how many, in which files, and each rule's fix once."""

from __future__ import annotations

from collections.abc import Iterator

from syncscan.lint.warning import LIMITS, LintResult, LintWarning
from syncscan.model.finding import Confidence, Severity
from syncscan.report.blocks import Block, Heading, Item, Items, Look, Sentence, Span, code, place

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
