"""A patch as the JSON that other programs rely on (schema `syncscan.fix/2`), and its changes beside findings."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.fixing.edits import Clash, Edit, applied, unified
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding, Source
from syncscan.model.fix import Fix, Fixed, SourceEdit, Suggested
from syncscan.model.json_text import Document, about, indented, written
from syncscan.source.text import Text
from syncscan.source.text import read as read_source
from syncscan.version import __version__

SCHEMA = "syncscan.fix/2"


class PatchedFile(Struct, frozen=True):
    """A file that the patch changes."""

    file: str
    diff: Annotated[str, about("unified diff, as git apply takes it")]


class PatchDocument(Document, frozen=True):
    """A patch that removes waits from a program."""

    program: str
    waits_before: Annotated[int, about("waits in the whole dry run without the patch")]
    waits_after: Annotated[int, about("waits in the whole dry run with the patch")]
    waits_apart: Annotated[int, about("those of waits_before in set-up and checkpoints")]
    tolerance: Annotated[float, about("allowed relative difference of printed and computed numbers")]
    seconds: float
    fixes: tuple[Fix, ...]
    files: tuple[PatchedFile, ...]
    notes: tuple[str, ...]
    not_compared: Annotated[tuple[str, ...], about("output that differs between two unchanged runs")]
    unjudged: Annotated[str, about("why it is unknown whether there is anything to fix; empty where it is known")]


def render(fixed: Fixed) -> str:
    files = tuple(written(PatchedFile, file) for file in fixed.files)
    return indented(written(PatchDocument, fixed, schema=SCHEMA, syncscan=__version__, files=files)) + "\n"


def read(path: str) -> tuple[Fix, ...]:
    """Return the fixes of a file that `syncscan fix --format json` wrote."""
    try:
        saved = msgspec.json.decode(Path(path).read_bytes(), type=_Saved)
    except (OSError, msgspec.DecodeError):
        raise UsageError(
            f"{path} holds no patch.", "Write one: syncscan fix --format json -o fix.json train.py"
        ) from None
    if saved.schema != SCHEMA:
        raise UsageError(f"{path} holds {saved.schema}, no patch.", "Write one with syncscan fix --format json.")
    return saved.fixes


class _Saved(Struct, frozen=True):
    """The parts of a patch document that are read back."""

    schema: str
    fixes: tuple[Fix, ...]


def with_changes(analysis: Analysis, fixes: str) -> Analysis:
    """Return an analysis with the changes of a file, as `fix --format json` writes it, at its findings."""
    return suggest(analysis, read(fixes))


def suggest(analysis: Analysis, fixes: Iterable[Fix]) -> Analysis:
    """Return an analysis whose findings have the changes of their lines, where their source file is at hand."""
    known = [(str(Path(fix.file).absolute()), fix) for fix in fixes if fix.changes]
    if not known:
        return analysis
    texts: dict[str, Text | None] = {}
    findings = tuple(_with_change(finding, known, texts) for finding in analysis.findings)
    return replace(analysis, findings=findings)


def _with_change(finding: Finding, fixes: Sequence[tuple[str, Fix]], texts: dict[str, Text | None]) -> Finding:
    source = finding.source
    if source is None or not source.exact:
        return finding
    here, certain = _place(source, finding.excerpt)
    for path, fix in fixes:
        if path == here and fix.line <= source.line <= fix.end_line and (fix.rule == finding.rule or certain):
            text = texts[path] if path in texts else texts.setdefault(path, _text(path))
            suggested = suggestion(text, fix) if text is not None else None
            if suggested is not None:
                return replace(finding, suggested=suggested)
    return finding


def _place(source: Source, excerpt: Excerpt | None) -> tuple[str, bool]:
    """Return the absolute path of a finding's file, and whether the file is known to be as it was recorded.

    A saved analysis keeps no path of its sources, and none of a module's own lines: its file is the recorded one.
    """
    if excerpt is not None and excerpt.path:
        return str(Path(excerpt.path).absolute()), not excerpt.newer
    return str(Path(source.file).absolute()), False


def _text(path: str) -> Text | None:
    try:
        return read_source(path)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return None


def suggestion(text: Text, fix: Fix) -> Suggested | None:
    """Return the change of one fix; None where the file isn't any more what the fix is of."""
    try:
        new = applied(text.text, [_edit(text, change) for change in fix.changes])
        ast.parse(new)
    except (Clash, SyntaxError, IndexError):
        return None
    return written(Suggested, fix, diff=unified(fix.file, text.text, new))


def _edit(text: Text, change: SourceEdit) -> Edit:
    begin = text.starts[change.line - 1] + change.column - 1
    end = text.starts[change.end_line - 1] + change.end_column - 1
    return Edit(begin, end, 0, change.text)
