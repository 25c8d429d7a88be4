"""The rule protocol: a rule looks at one blocking call and says what caused it, or passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from syncscan.detect.call import Call
from syncscan.model.finding import Diagnosis


class Rule(Protocol):
    """What a module in `detect/rules/` provides.

    The module's docstring is the rule's documentation, with the fixed headings that `syncscan explain` shows.
    """

    ID: str
    """Stable and readable, e.g. `nonzero`."""
    NAME: str
    """A short title, e.g. `nonzero reads its output size back`."""

    def match(self, call: Call) -> Diagnosis | None:
        """The diagnosis of this call, or None when the rule doesn't apply."""
        ...


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that raised: it is named in the warnings and skipped."""

    rule: str
    error: str
