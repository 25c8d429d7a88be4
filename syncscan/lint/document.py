"""Render lint warnings as the JSON that other programs rely on (schema `syncscan.lint/1`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.lint.warning import LIMITS, AllowedWarning, LintResult, LintWarning
from syncscan.model.finding import Cause, Confidence, Severity
from syncscan.model.json_text import about, indented, written
from syncscan.report.document import Document
from syncscan.version import __version__

SCHEMA = "syncscan.lint/1"


class WarningSourceDocument(Struct, frozen=True):
    """Source position of a lint warning."""

    file: str
    line: Annotated[int, about("from 1; in a notebook, within the cell")]
    column: Annotated[int, about("from 1, in characters")]
    end_line: int
    cell: Annotated[int | None, about("the number of the notebook cell, from 1")]
    function: str
    code: Annotated[str, about("the expression")]


class LintWarningDocument(Struct, frozen=True):
    """A place in the source that matches the pattern of a sync."""

    rule: str
    name: str
    cause: Cause
    severity: Severity
    confidence: Confidence
    scope: tuple[str, ...]
    source: WarningSourceDocument
    place: Annotated[str, about("the loop or function that runs in every step")]
    because: Annotated[str, about("why it may wait, and run in every step")]
    title: str
    why: str
    fix: str
    when_fine: str


class AllowedWarningDocument(LintWarningDocument, frozen=True):
    """A lint warning that the source or the project's configuration allows."""

    by: str
    reason: str


class LintDocument(Document, frozen=True):
    """Lint warnings, from the source alone."""

    limits: str
    files: Annotated[int, about("number of files read")]
    guesses: tuple[LintWarningDocument, ...]
    allowed: tuple[AllowedWarningDocument, ...]
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
        guesses=tuple(warning_document(g) for g in linted.warnings),
        allowed=tuple(_allowed(a) for a in linted.allowed),
    )
    return indented(document) + "\n"


def warning_document(g: LintWarning) -> LintWarningDocument:
    d = g.diagnosis
    place = {name: getattr(g, name) for name in ("severity", "scope", "place", "because")}
    return written(LintWarningDocument, d, **place, source=written(WarningSourceDocument, g))


def _allowed(a: AllowedWarning) -> AllowedWarningDocument:
    return written(AllowedWarningDocument, warning_document(a.warning), by=a.by, reason=a.reason)
