"""Define the protocol of rules: a rule looks at one blocking call and says what it is, or passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Replacement, Use
from syncscan.rules.pages import sync_page


class Rule(msgspec.Struct, frozen=True):
    """A rule, whose texts are the page `rules/syncs/ID.md`."""

    id: str
    """Stable and readable id, such as `nonzero`."""
    match: Callable[[Call], Diagnosis | None]
    """Returns what it states of a call, or None if the rule doesn't apply."""


def diagnose(rule: Rule, match: Diagnosis, library: str = "") -> Diagnosis:
    """Return what the rule states of a call, completed by its page.

    `library` names a library's function around the call, such as `covar_dist of gpytorch`; it is empty in other code.
    """
    page = sync_page(rule.id)
    cause = Cause(page.cause) if match.cause is Cause.UNKNOWN else match.cause
    fix = _filled(match.fix or _of(page.fixes, match), match.values)
    if library and not match.for_caller:
        fix = f"{_IN_A_LIBRARY.format(library)} {fix}"
    return replace(
        match,
        rule=page.id,
        name=page.name,
        cause=cause,
        title=_filled(match.title or _of(page.titles, match), match.values),
        why=f"{page.why} {match.seen}".rstrip(),
        fix=fix,
        when_fine=page.when_fine,
        do=_filled(match.do or _of(page.dos, match), match.values),
        replacement=match.replacement if match.fix else Replacement(_of(page.replacements, match) or "unknown"),
        use=match.use or _USES.get(cause, Use.UNKNOWN),
        copied=diagnose(rule, match.copied, library) if match.copied else None,
    )


def _of(texts: Mapping[str, str], match: Diagnosis) -> str:
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
