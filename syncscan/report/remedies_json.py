"""Build the remedies' part of the JSON report."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.finding import Confidence
from syncscan.model.habit import Basis
from syncscan.model.remedy import Remedy
from syncscan.report.document import Range, about
from syncscan.report.remedies import RemedyText


class RemedyDocument(Struct, frozen=True):
    """A change to make: syncs to remove together, or a habit to drop."""

    findings: Annotated[tuple[str, ...], about("ids of the syncs to remove together")]
    habit: Annotated[str | None, about("id of the habit, if it is one")]
    launches: Annotated[str | None, about("how the step launches, if the remedy changes that too")]
    what: str
    where: str
    fix: str
    alone_us: Annotated[float, about("individual saving")]
    range_us: Range
    after_us: Annotated[float | None, about("gain after all entries above; None for an upper bound")]
    basis: Basis
    confidence: Confidence


def remedy_document(r: Remedy, text: RemedyText) -> RemedyDocument:
    """Return one remedy with its sentences; all times in µs per step."""
    return RemedyDocument(
        findings=r.findings,
        habit=r.habit or None,
        launches=r.launches or None,
        what=r.what,
        where=text.where,
        fix=text.fix,
        alone_us=r.alone_us,
        range_us=r.range_us,
        after_us=r.after_us,
        basis=r.basis,
        confidence=r.confidence,
    )
