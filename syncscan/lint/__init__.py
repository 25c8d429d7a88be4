"""Find lines in source files that would block the host for its device, as far as the source shows."""

from __future__ import annotations

import ast
import datetime
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

from msgspec.structs import replace

from syncscan import api
from syncscan.facts.allow_comments import Comment, comments_in
from syncscan.lint.file_walk import FileWalk, Found
from syncscan.lint.pattern import Around, Hit, LintSite
from syncscan.lint.patterns import ANYWHERE, PATTERNS
from syncscan.lint.sources import CheckedSource, Unreadable, files_in, parsed, read
from syncscan.lint.warning import AllowedWarning, LintResult, LintWarning, WarningSource
from syncscan.model.finding import Cause, Severity, Source
from syncscan.model.view import matches
from syncscan.rules.pages import RuleDoc
from syncscan.source.tree import lines_of

if TYPE_CHECKING:
    from syncscan.gate.verdict import Allowance

_CODE = 120
_MENTIONS = ("torch", "lightning", "accelerat", "tensor")
"""A file with any of the patterns contains at least one of these words."""


def lint(
    paths: Iterable[str], allowed: Sequence[Allowance] = (), *, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> LintResult:
    """Find possible syncs in source files, which are neither run nor imported.

    Args:
        paths: Python files, notebooks, folders, `-` for standard input.
        allowed: the project's exceptions.
        select: globs of rules; without any, all.
        ignore: globs of rules.
    """
    linted = _linted(paths, {rule.id: rule for rule in api.rules()})
    if allowed:
        linted = _exempt(linted, allowed, datetime.date.today())
    chosen = (w for w in linted.warnings if not select or matches(w.rule, select))
    shown = tuple(g for g in chosen if not matches(g.rule, ignore))
    return replace(linted, warnings=shown, hidden=len(linted.warnings) - len(shown))


def _exempt(linted: LintResult, entries: Sequence[Allowance], today: datetime.date) -> LintResult:
    """Return the results with the warnings that an entry permits moved to the allowed ones.

    An entry for an op matches none, as no op ran; one that expires counts up to that day.
    """
    warnings, allowed, notes = [], list(linted.allowed), list(linted.notes)
    for warning in linted.warnings:
        named = [entry for entry in entries if _names(entry, warning)]
        counting = [entry for entry in named if entry.expires is None or today <= entry.expires]
        if counting:
            allowed.append(warning.allowed("allow-list", counting[0].reason))
            continue
        warnings.append(warning)
        notes += [f"{warning.source}: the allow-list's entry for it expired on {entry.expires}." for entry in named[:1]]
    return replace(linted, warnings=tuple(warnings), allowed=tuple(allowed), notes=tuple(notes))


def _names(entry: Allowance, warning: LintWarning) -> bool:
    from syncscan.gate.limits import names_line

    source = Source(warning.source.file, warning.source.line, warning.source.function, exact=True)
    scopes = (*warning.scope, "/".join(warning.scope))
    return (
        not entry.op
        and (not entry.rule or fnmatchcase(warning.rule, entry.rule))
        and (not entry.scope or any(fnmatchcase(scope, entry.scope) for scope in scopes))
        and (not entry.line or names_line(entry.line, source))
    )


def _linted(paths: Iterable[str], rules: Mapping[str, RuleDoc]) -> LintResult:
    warnings: list[LintWarning] = []
    allowed: list[AllowedWarning] = []
    notes: list[str] = []
    unread: list[str] = []
    files, unread_named = 0, False
    for file, named in files_in(paths):
        try:
            result = _of_file(read(file), named, rules)
        except Unreadable as e:
            unread.append(str(e))
            unread_named |= named
            continue
        files += 1
        warnings += result.warnings
        allowed += result.allowed
        notes += result.notes
    return LintResult(
        warnings=tuple(warnings),
        allowed=tuple(allowed),
        notes=tuple(notes),
        files=files,
        unread=tuple(unread),
        unread_named=unread_named,
    )


def _of_file(source: CheckedSource, named: bool, rules: Mapping[str, RuleDoc]) -> LintResult:
    text = source.text.lower()
    if not named and not any(word in text for word in _MENTIONS):
        return LintResult(warnings=())
    with catch_warnings():
        simplefilter("ignore")  # of what the source says: invalid escapes, `is` with a literal
        tree = parsed(source)
    try:
        hits = FileWalk(tree, PATTERNS, ANYWHERE).found()
    except RecursionError:
        raise Unreadable(f"{source.path} is nested too deeply to analyze.") from None
    return _sort_out(source, hits, rules)


def _sort_out(source: CheckedSource, hits: Iterable[Found], rules: Mapping[str, RuleDoc]) -> LintResult:
    """Return the hits of a file as lint warnings, separate from those that the file itself allows."""
    comments = {comment.line: comment for comment in comments_in(source.text)}
    warnings, allowed, notes = [], [], []
    for hit, site in hits:
        warning = _warning(source, hit, site, rules[hit.rule])
        comment = next((comments[line] for line in lines_of(site.node) if line in comments), None)
        if site.around.allowed:
            allowed.append(warning.allowed("allowed block", site.around.allowed))
        elif comment and comment.allows(warning.rule):
            allowed.append(warning.allowed("comment", comment.reason))
        else:
            warnings.append(warning)
            if comment:
                notes.append(f"{warning.source}: {comment} doesn't allow {warning.rule}: {_why_not(comment)}.")
    return LintResult(warnings=tuple(warnings), allowed=tuple(allowed), notes=tuple(notes))


def _why_not(comment: Comment) -> str:
    if not comment.rules:
        return "it names no rule"
    return "it names another rule" if comment.reason else "it gives no reason"


def _warning(source: CheckedSource, hit: Hit, site: LintSite, doc: RuleDoc) -> LintWarning:
    node, around = site.node, site.around
    rare = around.guard or around.place.evaluation or hit.seldom
    cell, line = source.place(node.lineno)
    column = source.offset(node.lineno, node.col_offset) - source.starts[node.lineno - 1]
    code = " ".join(ast.unparse(node).split())
    return LintWarning(
        rule=hit.rule,
        name=doc.name,
        cause=Cause(doc.cause.value),
        severity=Severity.LOW if rare else Severity.MEDIUM,
        confidence=hit.confidence,
        scope=around.scope,
        source=WarningSource(
            file=source.path,
            line=line,
            column=column + 1,
            end_line=line + (node.end_lineno or node.lineno) - node.lineno,
            cell=cell,
            function=around.function,
            code=code if len(code) <= _CODE else f"{code[: _CODE - 1]}…",
        ),
        place=around.words or "the program's settings",
        because=_because(hit, around),
        title=hit.title,
        why=_first_paragraph(doc, "Why it stalls"),
        fix=hit.fix,
        when_fine=_first_paragraph(doc, "When it is fine"),
    )


def _because(hit: Hit, around: Around) -> str:
    """Return the reason for the warning, and the evidence that it rests on."""
    reason = f"In {around.words}" if around.words else "It applies from here on"
    if around.guard:
        reason += f", and runs only where {around.guard}"
    elif around.place.evaluation:
        reason += ", which runs no training step"
    return f"{reason}. {hit.seen}".strip()


def _first_paragraph(doc: RuleDoc, heading: str) -> str:
    return " ".join(doc.sections.get(heading, "").partition("\n\n")[0].replace("`", "").split())


__all__ = ["lint"]
