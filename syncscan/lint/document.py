"""Render lint warnings as the JSON that other programs rely on (schema `syncscan.lint/1`)."""

from __future__ import annotations

from typing import Annotated

from syncscan.lint.warning import LIMITS, AllowedWarning, LintResult, LintWarning
from syncscan.model.json_text import Document, about, indented, written
from syncscan.version import __version__

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
