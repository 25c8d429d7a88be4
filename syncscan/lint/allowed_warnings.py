"""Remove lint warnings that a project's allow-list permits."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from syncscan.gate.limits import names_line
from syncscan.gate.verdict import Allowance
from syncscan.lint.warning import LintResult, LintWarning
from syncscan.model.finding import Source


def exempt(linted: LintResult, entries: Sequence[Allowance], today: datetime.date) -> LintResult:
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
    source = Source(warning.source.file, warning.source.line, warning.source.function, exact=True)
    scopes = (*warning.scope, "/".join(warning.scope))
    return (
        not entry.op
        and (not entry.rule or fnmatchcase(warning.rule, entry.rule))
        and (not entry.scope or any(fnmatchcase(scope, entry.scope) for scope in scopes))
        and (not entry.line or names_line(entry.line, source))
    )
