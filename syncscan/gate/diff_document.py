"""Render a Diff as the JSON that other programs rely on (schema `syncscan.diff/1`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.gate.diff_report import verdict
from syncscan.gate.differences import Diff, DiffState, HabitChange, Promise, Site, SiteChange, SiteStatus, StepChange
from syncscan.model.finding import Phase, Source
from syncscan.model.json_text import Document, about, indented, written
from syncscan.version import __version__

SCHEMA = "syncscan.diff/1"


class BeforeAndAfter(Struct, frozen=True):
    """A time in both states."""

    before: float | None
    after: float | None


class StepChangeDocument(Struct, frozen=True):
    """Change of the step time."""

    before_us: float | None
    after_us: float | None
    saving_us: float | None
    margin_us: Annotated[float | None, about("half-width of the 95 % interval")]
    distinguishable: Annotated[bool, about("whether the change is distinguishable from noise")]
    unprofiled: Annotated[bool, about("whether both times are unprofiled")]
    device_busy_us: BeforeAndAfter
    run_ahead_us: Annotated[BeforeAndAfter | None, about("how far the host is ahead of the device, median launch")]
    not_comparable: Annotated[str | None, about("why the two can't be compared")]


class MovedDocument(Struct, frozen=True):
    """A wait that moved to another sync."""

    to: Annotated[str, about("id of the finding that waits instead")]
    us: Annotated[float, about("part of the wait that moved")]
    before_us: float
    after_us: float


class SiteDocument(Struct, frozen=True):
    """The findings at one place."""

    ids: tuple[str, ...]
    rules: tuple[str, ...]
    ranks: Annotated[tuple[int, ...], about("ranks of a job that have it")]
    source: Source | None
    called_from: Source | None
    per_step: float
    wait_us: float
    bubble_us: float
    recoverable_us: float | None
    once_compiled_us: Annotated[
        float | None, about("projected: saving if the network is compiled and other syncs are removed")
    ]


class ChangeDocument(Struct, frozen=True):
    """A place that appeared, disappeared or changed."""

    change: SiteStatus
    rule: str
    op: str
    scope: tuple[str, ...]
    phase: Phase
    intended: bool
    waits_more_or_less_often: bool
    waits_longer_or_shorter: bool
    on_other_ranks: Annotated[bool, about("for jobs only")]
    before: SiteDocument | None
    after: SiteDocument | None


class DiffDocument(Document, frozen=True):
    """The changes from one recording or job to another."""

    verdict: str
    before: DiffState
    after: DiffState
    step: StepChangeDocument
    promised: Promise | None
    moved: tuple[MovedDocument, ...]
    changes: tuple[ChangeDocument, ...]
    habits: tuple[HabitChange, ...]
    notes: tuple[str, ...]


def render(diff: Diff) -> str:
    """Return the diff as indented JSON; all times in µs, means per step."""
    return indented(document(diff)) + "\n"


def document(diff: Diff) -> DiffDocument:
    return written(
        DiffDocument,
        diff,
        schema=SCHEMA,
        syncscan=__version__,
        verdict=verdict(diff),
        step=_step(diff.step),
        promised=diff.promise,
        moved=tuple(written(MovedDocument, m, to=m.to.first.id) for m in diff.moved),
        changes=tuple(_change(c) for c in diff.changes),
    )


def _step(step: StepChange) -> StepChangeDocument:
    device = BeforeAndAfter(*step.device_us)
    ahead = BeforeAndAfter(*step.ahead_us) if step.ahead_us else None
    return written(
        StepChangeDocument, step, device_busy_us=device, run_ahead_us=ahead, not_comparable=step.why_not or None
    )


def _change(change: SiteChange) -> ChangeDocument:
    return written(
        ChangeDocument,
        change.site.first,
        change=change.change,
        intended=change.site.intended,
        waits_more_or_less_often=change.how_often,
        waits_longer_or_shorter=change.how_long,
        on_other_ranks=change.other_ranks,
        before=_site(change.before),
        after=_site(change.after),
    )


def _site(site: Site | None) -> SiteDocument | None:
    if site is None:
        return None
    return written(
        SiteDocument,
        site,
        ids=tuple(dict.fromkeys(f.id for f in site.findings)),
        rules=tuple(dict.fromkeys(f.rule for f in site.findings)),
        source=site.first.source,
        called_from=site.first.in_library,
    )
