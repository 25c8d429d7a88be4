"""The rule protocol: a rule looks at one blocking call and says what caused it, or passes; its docstring explains."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis

HEADINGS = (
    "What it finds",
    "Why it stalls",
    "How it shows in the trace",
    "Example",
    "Use instead",
    "When it is fine",
    "Versions",
    "References",
)
"""The headings of every rule's documentation, in their order."""


class Rule(Protocol):
    """What a module in `detect/rules/` provides; its docstring has a summary line and then `HEADINGS` as `## …`."""

    ID: str
    """Stable and readable, e.g. `nonzero`: the module's name with hyphens."""
    NAME: str
    """A short title, e.g. `nonzero reads its number of hits back`."""
    CAUSE: Cause
    """The class of the catalogue; a diagnosis may carry another where one rule spans two."""

    def match(self, call: Call) -> Diagnosis | None:
        """The diagnosis of this call, or None when the rule doesn't apply."""
        ...


@dataclass(frozen=True, slots=True)
class RuleDoc:
    """What there is to read about a rule: its id, title and cause, one sentence, and a text for each of `HEADINGS`.

    Texts are Markdown. `sections` is empty where Python was started with `-OO`, which drops docstrings.
    """

    id: str
    name: str
    cause: Cause
    summary: str
    sections: Mapping[str, str]

    def code(self, heading: str) -> str:
        """The Python code block in this section; empty without."""
        found = _CODE.search(self.sections.get(heading, ""))
        return found.group(1) if found else ""


_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def document(rule: Rule) -> RuleDoc:
    """The documentation of a rule, from its module's docstring."""
    text = inspect.cleandoc(rule.__doc__ or "")
    summary, *rest = _HEADING.split(text)
    sections = {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    return RuleDoc(rule.ID, rule.NAME, rule.CAUSE, " ".join(summary.split()), sections)
