"""Link the report of a trace from another page, which is written beside it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from syncscan.model.analysis import Analysis


class LinkedReport(msgspec.Struct, frozen=True):
    """The address of a report, relative to the page that links it, and where its findings are."""

    href: str
    numbers: Mapping[str, int]
    """Finding id → its number in the report."""

    def finding(self, id: str) -> str:
        """Return the address of a finding in the report; empty where the report doesn't have it."""
        return f"{self.href}#f{self.numbers[id]}" if id in self.numbers else ""


def linked(analysis: Analysis, href: str) -> LinkedReport:
    """Return a link to the report of an analysis.

    Args:
        analysis: the analysis that the report is of.
        href: the report's address, relative to the page that links it.
    """
    return LinkedReport(href, {f.id: number for number, f in enumerate(analysis.findings)})
