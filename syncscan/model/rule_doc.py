"""What there is to read about a rule: its id, title and class, one sentence, and a text for each heading."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

import msgspec

from syncscan.model.finding import Cause
from syncscan.model.habit import Area


class RuleDoc(msgspec.Struct, frozen=True):
    """What there is to read about a rule; texts are Markdown.

    Where Python was started with `-OO`, which drops docstrings, `summary` is empty and `sections` has only what
    findings and habits say too.
    """

    id: str
    name: str
    cause: Cause | Area
    """The class of what it finds: why a sync waits, or which part of a step a habit belongs to."""
    summary: str
    sections: Mapping[str, str]

    @property
    def of_habit(self) -> bool:
        """Whether the rule finds habits, and not syncs."""
        return isinstance(self.cause, Area)

    def code(self, heading: str) -> str:
        """The Python code block in this section; empty without."""
        found = _CODE.search(self.sections.get(heading, ""))
        return found.group(1) if found else ""


_CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def sections_of(docstring: str) -> tuple[str, dict[str, str]]:
    """The first paragraph of a rule's docstring on one line, and each heading's text."""
    summary, *rest = _HEADING.split(inspect.cleandoc(docstring))
    found = {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    return " ".join(summary.split()), found


def in_order(sections: Mapping[str, str], headings: tuple[str, ...]) -> dict[str, str]:
    """The sections as these headings are ordered; others behind them."""
    place = {heading: number for number, heading in enumerate(headings)}
    return {title: sections[title] for title in sorted(sections, key=lambda title: place.get(title, len(place)))}
