"""Puts the changes of `syncscan fix` beside the findings whose lines they change."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from syncscan.fixing import document
from syncscan.fixing.edits import Clash, Edit, applied
from syncscan.fixing.patch_builder import unified
from syncscan.fixing.source_text import Text, read
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding, Source
from syncscan.model.fix import Fix, SourceEdit, Suggested


def with_changes(analysis: Analysis, fixes: str) -> Analysis:
    """Return an analysis with the changes of a file, as `fix --format json` writes it, at its findings."""
    return suggest(analysis, document.read(fixes))


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
        return read(path)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return None


def suggestion(text: Text, fix: Fix) -> Suggested | None:
    """Return the change of one fix; None where the file isn't any more what the fix is of."""
    try:
        new = applied(text.text, [_edit(text, change) for change in fix.changes])
        ast.parse(new)
    except (Clash, SyntaxError, IndexError):
        return None
    return Suggested(
        diff=unified(fix.file, text.text, new),
        change=fix.change,
        safety=fix.safety,
        why=fix.why,
        verified=fix.verified,
        how=fix.how,
        changes=fix.changes,
    )


def _edit(text: Text, change: SourceEdit) -> Edit:
    begin = text.starts[change.line - 1] + change.column - 1
    end = text.starts[change.end_line - 1] + change.end_column - 1
    return Edit(begin, end, 0, change.text)
