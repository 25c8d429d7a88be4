"""The rule protocol: a rule looks at one blocking call and says what it is, or passes; its texts explain the cause."""

from __future__ import annotations

from functools import cache
from typing import Protocol

import msgspec

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Confidence, Diagnosis, Removal, Use
from syncscan.model.rule_doc import RuleDoc, in_order, sections_of

WHY, WHEN_FINE = "Why it stalls", "When it is fine"
"""The two headings whose text is a constant in the rule, because findings say it too."""

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
"""The headings of every rule's documentation, in their order."""


class Match(msgspec.Struct, frozen=True):
    """What a rule says of the one call that it matches; what it says of all of them are its constants."""

    title: str
    """What waits for what, in a few words: `x[mask] waits for the number of selected elements`."""
    fix: str
    """What to write instead, plain text."""
    removal: Removal
    """What of the call is left when that is done."""
    seen: str = ""
    """A sentence about this very call, where the rule's `WHY` can't say all; it follows there."""
    use: Use | None = None
    """What the host does with the value, where that isn't what the cause's class says."""
    cause: Cause | None = None
    """The class of the catalogue, where one rule spans two; else the rule's."""
    confidence: Confidence = Confidence.HIGH
    intended: bool = False
    """True for waits that are meant or are not the program's own."""
    copied: Match | None = None
    """What it says where the line's source shows that the program itself copies what is indexed there."""
    for_caller: bool = False
    """True where `fix` is for who calls a library; else it is, in a library's own code, what could stand there."""


class Rule(Protocol):
    """What a module in `detect/rules/` provides.

    Its docstring has a summary line and then, as `## …`, those of `HEADINGS` that are no constant.
    """

    ID: str
    """Stable and readable, e.g. `nonzero`: the module's name with hyphens."""
    NAME: str
    """A short title, e.g. `nonzero reads its number of hits back`."""
    CAUSE: Cause
    """The class of the catalogue."""
    WHY: str
    """Why the host waits, Markdown: a finding says the first paragraph, the documentation all of them."""
    WHEN_FINE: str
    """When to leave it as it is, likewise."""

    def match(self, call: Call) -> Match | None:
        """What this call is, or None when the rule doesn't apply."""
        ...


def diagnose(rule: Rule, match: Match, library: str = "") -> Diagnosis:
    """What a finding says: the rule's own words, and those of its match.

    Args:
        library: the function of a library in whose code the call stands, `covar_dist of gpytorch`; empty elsewhere.
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
"""What a cause's class says of the value: a shape, a branch and a check need it, a log shows it. A read-back, and what
ranks tell each other, may be either."""


_IN_A_LIBRARY = "It stands in {}: look for an argument or setting that spares it, or call it less often. There:"


@cache
def _in_a_finding(text: str) -> str:
    """The first paragraph as plain text on one line."""
    return " ".join(text.strip().partition("\n\n")[0].replace("`", "").split())


def document(rule: Rule) -> RuleDoc:
    """The documentation of a rule, from its module's docstring and its two texts."""
    summary, found = sections_of(rule.__doc__ or "")
    found |= {WHY: rule.WHY.strip(), WHEN_FINE: rule.WHEN_FINE.strip()}
    return RuleDoc(rule.ID, rule.NAME, rule.CAUSE, summary, in_order(found, HEADINGS))
