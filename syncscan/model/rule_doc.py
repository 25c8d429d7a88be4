"""Documentation of a rule: its id, title and class, one sentence, and a text per heading."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from syncscan.model.finding import Cause
from syncscan.model.habit import Area


class RuleDoc(msgspec.Struct, frozen=True):
    """Documentation of a rule; the summary and the sections are Markdown."""

    id: str
    name: str
    cause: Cause | Area
    """Class of its findings: why a sync waits, or the part of a step that a habit belongs to."""
    summary: str
    sections: Mapping[str, str]
    titles: Mapping[str, str]
    """Titles of its findings, with fields such as `{op}`, by variant: "" for calls without a title of their own."""
    fixes: Mapping[str, str]
    """Texts on what to write instead, by variant."""
    dos: Mapping[str, str]
    """Those texts in one imperative line, by variant."""
    replacements: Mapping[str, str]
    """The work that each puts in the op's place, by variant; see `Replacement`."""
    why: str
    """Why it costs time, as a finding says it: in plain text."""
    when_fine: str
    """When to leave the code as it is, as a finding says it."""
    subject: str = ""
    """The thing that a habit's change is about, where a first screen has no line: `the DataLoader`; else empty."""

    @property
    def of_habit(self) -> bool:
        """Return whether the rule finds habits rather than syncs."""
        return isinstance(self.cause, Area)

    def code(self, heading: str) -> str:
        """Return the Python code block of this section; empty without one."""
        block = _CODE.search(self.sections.get(heading, ""))
        return block.group(1) if block else ""


_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
