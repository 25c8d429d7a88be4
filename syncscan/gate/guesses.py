"""Remove lint warnings that a project's allow-list permits."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from syncscan.gate.limits import names_line
from syncscan.model.check import Allowance
from syncscan.model.finding import Source
from syncscan.model.guess import Allowed, Guess, Linted


def exempt(linted: Linted, entries: Sequence[Allowance], today: datetime.date) -> Linted:
    """Return the results with the warnings that an entry permits moved to the allowed ones.

    Args:
        linted: any.
        entries: the allow-list's entries; one for an op matches no lint warning, as no op ran.
        today: an entry counts up to the day on which it expires.
    """
    guesses, allowed, notes = [], list(linted.allowed), list(linted.notes)
    for guess in linted.guesses:
        named = [entry for entry in entries if _names(entry, guess)]
        counting = [entry for entry in named if entry.expires is None or today <= entry.expires]
        if counting:
            allowed.append(Allowed(guess, "allow-list", counting[0].reason))
            continue
        guesses.append(guess)
        notes += [f"{guess.where}: the allow-list's entry for it expired on {entry.expires}." for entry in named[:1]]
    return replace(linted, guesses=tuple(guesses), allowed=tuple(allowed), notes=tuple(notes))


def _names(entry: Allowance, guess: Guess) -> bool:
    source = Source(guess.file, guess.line, guess.function, exact=True)
    scopes = (*guess.scope, "/".join(guess.scope))
    return (
        not entry.op
        and (not entry.rule or fnmatchcase(guess.rule, entry.rule))
        and (not entry.scope or any(fnmatchcase(scope, entry.scope) for scope in scopes))
        and (not entry.line or names_line(entry.line, source))
    )
