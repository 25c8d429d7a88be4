"""Define the protocol of rules: a rule looks at one blocking call and says what it is, or passes."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import msgspec

from syncscan.detect.call import Call
from syncscan.model import race_examples
from syncscan.model.finding import Cause, Confidence, Diagnosis, Removal, Use
from syncscan.model.rule_doc import RuleDoc, in_order, sections_of

WHY, WHEN_FINE = "Why it stalls", "When it is fine"
"""Headings whose text is a constant in the rule, since findings use it too."""

HEADINGS = (
    "What it finds",
    WHY,
    "How it shows in the trace",
    "Example",
    "Use instead",
    WHEN_FINE,
    "Versions",
    "References",
)
"""Headings of every rule's documentation, in order. A rule whose fix copies without waiting names the race as
`RACE`, and has one more heading, before that on versions."""


class Match(msgspec.Struct, frozen=True):
    """A rule's statements about one matching call; its constants say what is true of all."""

    title: str
    """A few words on what waits for what: `x[mask] waits for the number of selected elements`."""
    fix: str
    """Plain text on what to write instead."""
    removal: Removal
    """The part of the call that remains after the fix."""
    seen: str = ""
    """A sentence about this call, if the rule's `WHY` can't say everything; it follows there."""
    use: Use | None = None
    """Use of the value by the host, if it differs from the cause's class."""
    cause: Cause | None = None
    """Class of the catalog if a rule spans two; else the rule's."""
    confidence: Confidence = Confidence.HIGH
    intended: bool = False
    """Whether the wait is intended or not the program's own."""
    copied: Match | None = None
    """The match to use if the source line shows that the program itself copies what is indexed there."""
    per_statement: bool = False
    """Whether all that the rule finds in one statement of the program is one place: torch waits in many lines there."""
    for_caller: bool = False
    """Whether `fix` is for the caller of a library; else, in a library's own code, it is for that code."""


class Rule(Protocol):
    """Members of a module in `detect/rules/`.

    Its docstring has a summary line and then, as `## …`, those of `HEADINGS` that aren't constants.
    """

    ID: str
    """Stable and readable id, such as `nonzero`: the module's name with hyphens."""
    NAME: str
    """A short title, such as `nonzero reads the number of matches back`."""
    CAUSE: Cause
    """The class of the catalog."""
    WHY: str
    """Why the host waits, in Markdown: findings show the first paragraph, the documentation all of them."""
    WHEN_FINE: str
    """When to leave the code as it is, in Markdown."""

    def match(self, call: Call) -> Match | None:
        """Return what this call is, or None if the rule doesn't apply."""
        ...


def diagnose(rule: Rule, match: Match, library: str = "") -> Diagnosis:
    """Return the diagnosis for a finding, from the rule's texts and its match.

    Args:
        library: library function around the call, such as `covar_dist of gpytorch`; empty in other code.
    """
    fix = match.fix if match.for_caller or not library else f"{_IN_A_LIBRARY.format(library)} {match.fix}"
    return Diagnosis(
        rule.ID,
        rule.NAME,
        match.cause or rule.CAUSE,
        title=match.title,
        why=f"{_in_a_finding(rule.WHY)} {match.seen}".rstrip(),
        fix=fix,
        when_fine=_in_a_finding(rule.WHEN_FINE),
        confidence=match.confidence,
        intended=match.intended,
        removal=match.removal,
        use=match.use or _USES.get(match.cause or rule.CAUSE, Use.UNKNOWN),
        copied=diagnose(rule, match.copied, library) if match.copied else None,
        per_statement=match.per_statement,
    )


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


@cache
def _in_a_finding(text: str) -> str:
    """Return the first paragraph as plain text on one line."""
    return " ".join(text.strip().partition("\n\n")[0].replace("`", "").split())


def document(rule: Rule) -> RuleDoc:
    """Return the documentation of a rule, from its module's docstring and its two texts."""
    summary, sections = sections_of(rule.__doc__ or "")
    sections |= {WHY: rule.WHY.strip(), WHEN_FINE: rule.WHEN_FINE.strip()}
    race = getattr(rule, "RACE", None)
    if race is not None:
        sections[race_examples.HEADING] = race_examples.section(race)
    return RuleDoc(
        rule.ID,
        rule.NAME,
        rule.CAUSE,
        summary,
        in_order(sections, (*HEADINGS[:6], race_examples.HEADING, *HEADINGS[6:])),
    )
