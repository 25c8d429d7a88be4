"""Documentation of a rule: its id, title and class, one sentence, and a text per heading."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

import msgspec

from syncscan.model.finding import Cause
from syncscan.model.habit import Area


class RuleDoc(msgspec.Struct, frozen=True):
    """Documentation of a rule; texts are Markdown.

    If Python runs with `-OO`, which drops docstrings, `summary` is empty and `sections` has only the texts of findings
    and habits.
    """

    id: str
    name: str
    cause: Cause | Area
    """Class of its findings: why a sync waits, or the part of a step that a habit belongs to."""
    summary: str
    sections: Mapping[str, str]

    @property
    def of_habit(self) -> bool:
        """Return whether the rule finds habits rather than syncs."""
        return isinstance(self.cause, Area)

    def code(self, heading: str) -> str:
        """Return the Python code block of this section; empty without one."""
        block = _CODE.search(self.sections.get(heading, ""))
        return block.group(1) if block else ""


_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections_of(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a rule's docstring on one line, and the text of each heading."""
    summary, *rest = _HEADING.split(inspect.cleandoc(docstring))
    sections = {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    return " ".join(summary.split()), sections


def in_order(sections: Mapping[str, str], headings: tuple[str, ...]) -> dict[str, str]:
    """Return the sections in the order of these headings, others after them."""
    place = {heading: number for number, heading in enumerate(headings)}
    return {title: sections[title] for title in sorted(sections, key=lambda title: place.get(title, len(place)))}
