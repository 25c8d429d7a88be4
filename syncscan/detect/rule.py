"""Define the protocol of rules: a rule looks at one blocking call and says what it is, or passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Confidence, Diagnosis, Removal, Use
from syncscan.rules.pages import sync_page


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's statements about one matching call; its page says what is true of all."""

    removal: Removal = Removal.NOTHING
    """The part of the call that remains after the fix."""
    variant: str = ""
    """Which of the page's titles and fixes it has, if there are several."""
    values: Mapping[str, str] = {}
    """Values of the fields in the page's title and fix, as of `{op} waits for a size`."""
    title: str = ""
    """A few words on what waits for what, if a table rather than the page says it."""
    fix: str = ""
    """Plain text on what to write instead, if a table says it."""
    do: str = ""
    """That in one imperative line."""
    seen: str = ""
    """A sentence about this call, if the page's can't say everything; it follows why the call waits."""
    use: Use | None = None
    """Use of the value by the host, if it differs from the cause's class."""
    cause: Cause | None = None
    """Class of the catalog if a rule spans two; else the page's."""
    confidence: Confidence = Confidence.HIGH
    intended: bool = False
    """Whether the wait is intended or not the program's own."""
    copied: Match | None = None
    """The match to use if the source line shows that the program itself copies what is indexed there."""
    per_statement: bool = False
    """Whether all that the rule finds in one statement of the program is one place: torch waits in many lines there."""
    for_caller: bool = False
    """Whether `fix` is for the caller of a library; else, in a library's own code, it is for that code."""


class Rule(msgspec.Struct, frozen=True):
    """A rule, whose texts are the page `rules/syncs/ID.md`."""

    id: str
    """Stable and readable id, such as `nonzero`."""
    match: Callable[[Call], Match | None]
    """Returns what a call is, or None if the rule doesn't apply."""


def diagnose(rule: Rule, match: Match, library: str = "") -> Diagnosis:
    """Return the diagnosis for a finding, from the rule's page and its match.

    `library` names a library's function around the call, such as `covar_dist of gpytorch`; it is empty in other code.
    """
    page = sync_page(rule.id)
    fix, cause = _filled(match.fix or _of(page.fixes, match), match.values), match.cause or Cause(page.cause)
    if library and not match.for_caller:
        fix = f"{_IN_A_LIBRARY.format(library)} {fix}"
    return Diagnosis(
        page.id,
        page.name,
        cause,
        title=_filled(match.title or _of(page.titles, match), match.values),
        why=f"{page.why} {match.seen}".rstrip(),
        fix=fix,
        when_fine=page.when_fine,
        confidence=match.confidence,
        intended=match.intended,
        do=_filled(match.do or _of(page.dos, match), match.values),
        removal=match.removal,
        use=match.use or _USES.get(cause, Use.UNKNOWN),
        copied=diagnose(rule, match.copied, library) if match.copied else None,
        per_statement=match.per_statement,
    )


def _of(texts: Mapping[str, str], match: Match) -> str:
    return texts.get(match.variant) or texts.get("", "")


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with these values for its fields; other braces are code and stay."""
    for field, value in values.items():
        text = text.replace(f"{{{field}}}", value)
    return text


_USES = {
    Cause.SHAPE: Use.STEERS,
    Cause.CTRL: Use.STEERS,
    Cause.CHECK: Use.STEERS,
    Cause.LOG: Use.SHOWN,
    Cause.PAGEABLE: Use.NOTHING,
    Cause.EXPLICIT: Use.NOTHING,
    Cause.ALLOC: Use.NOTHING,
    Cause.INIT: Use.NOTHING,
    Cause.DEBUG: Use.NOTHING,
}
"""Use of the value that a cause's class implies: a shape, a branch and a check need it, a log shows it. A read-back,
and what ranks exchange, may be either."""


_IN_A_LIBRARY = "It is in {}: look for an argument or setting that avoids it, or call it less often. There:"
