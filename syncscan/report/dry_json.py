"""Build the dry run's part of the JSON report."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.likeness import Likeness
from syncscan.report.document import Range, about
from syncscan.report.dry_run import sizes
from syncscan.report.phrases import whereabouts


class GapDocument(Struct, frozen=True):
    """Code for which a dry run doesn't know whether it waits."""

    what: str
    count: int
    file: str
    line: int


class UnseenDocument(Struct, frozen=True):
    """A finding that only the recording has."""

    id: str
    where: str
    wait_us: float
    recoverable_us: float | None


class LikenessDocument(Struct, frozen=True):
    """The recording that a dry run is compared with."""

    path: str
    device: str | None
    steps: int
    step_us: float | None
    recoverable_us: float | None
    recoverable_range_us: Range | None
    sizes: Annotated[str, about("whether both runs have the same sizes, as a sentence")]
    same_sizes: bool | None
    unseen: tuple[UnseenDocument, ...]


class DryRunDocument(Struct, frozen=True):
    """Facts on a dry run besides its findings."""

    ops: Annotated[int | None, about("ops on the simulated device")]
    not_understood: tuple[GapDocument, ...]
    notes: tuple[str, ...]
    like: LikenessDocument | None


def dry_document(analysis: Analysis) -> DryRunDocument | None:
    """Return the dry run's part of the JSON report; None for a recording."""
    capture = analysis.trace.info.capture
    if not capture.pretended:
        return None
    coverage = capture.coverage
    gaps = coverage.gaps if coverage else ()
    return DryRunDocument(
        ops=coverage.ops if coverage else None,
        not_understood=tuple(GapDocument(g.what, g.count, g.file, g.line) for g in gaps),
        notes=capture.notes,
        like=_like(analysis.likeness) if analysis.likeness else None,
    )


def _like(like: Likeness) -> LikenessDocument:
    return LikenessDocument(
        path=like.path,
        device=like.device or None,
        steps=like.steps,
        step_us=like.step_us or None,
        recoverable_us=like.recoverable_us,
        recoverable_range_us=like.range_us or None,
        sizes=sizes(like),
        same_sizes=None if not like.compared else not any(c.other_size for _, c in like.compared),
        unseen=tuple(_unseen(f) for f in like.unseen),
    )


def _unseen(f: Finding) -> UnseenDocument:
    gain = f.gain.recoverable_us if f.gain else None
    return UnseenDocument(id=f.id, where=whereabouts(f), wait_us=f.wait_us, recoverable_us=gain)
