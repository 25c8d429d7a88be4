"""Render a FleetDiff as the JSON that other programs rely on (schema `syncscan.fleet-diff/1`)."""

from __future__ import annotations

from msgspec import Struct

from syncscan.model.diff import SiteStatus, StepChange
from syncscan.model.fleet_diff import FleetDiff, JobChange, JobSite, JobState
from syncscan.model.json_text import indented
from syncscan.report.document import Document, PromiseDocument, promise_document
from syncscan.report.fleet_diff_story import story_of
from syncscan.version import __version__

SCHEMA = "syncscan.fleet-diff/1"


class JobStateDocument(Struct, frozen=True):
    """A job at one time."""

    ranks: int
    steps: int
    held_up_us: float | None
    holders: tuple[int, ...]


class JobStepDocument(Struct, frozen=True):
    """Change of the job's step time."""

    before_us: float | None
    after_us: float | None
    saving_us: float | None
    margin_us: float | None
    distinguishable: bool
    unprofiled: bool
    not_comparable: str | None


class JobSiteDocument(Struct, frozen=True):
    """The findings at one place, over all ranks."""

    ids: tuple[str, ...]
    file: str | None
    line: int | None
    ranks: tuple[int, ...]
    per_step: float
    wait_us: float | None
    job_gain_us: float | None


class JobChangeDocument(Struct, frozen=True):
    """A place that appeared, disappeared, changed, or is on other ranks."""

    change: SiteStatus
    rule: str
    op: str
    scope: tuple[str, ...]
    phase: str
    intended: bool
    waits_more_or_less_often: bool
    waits_longer_or_shorter: bool
    on_other_ranks: bool
    before: JobSiteDocument | None
    after: JobSiteDocument | None


class FleetDiffDocument(Document, frozen=True):
    """The changes from one state of a job to another."""

    verdict: str
    before: JobStateDocument
    after: JobStateDocument
    step: JobStepDocument
    promised: PromiseDocument | None
    changes: tuple[JobChangeDocument, ...]
    notes: tuple[str, ...]


def render(diff: FleetDiff) -> str:
    """Return the two states of a job as indented JSON; all times in µs, means per step."""
    return indented(document(diff)) + "\n"


def document(diff: FleetDiff) -> FleetDiffDocument:
    """Return the two states as their JSON document."""
    return FleetDiffDocument(
        schema=SCHEMA,
        syncscan=__version__,
        verdict=story_of(diff).verdict,
        before=_state(diff.before),
        after=_state(diff.after),
        step=_step(diff.step),
        promised=promise_document(diff.promise),
        changes=tuple(_change(c) for c in diff.changes),
        notes=diff.notes,
    )


def _state(state: JobState) -> JobStateDocument:
    return JobStateDocument(state.ranks, state.steps, state.held_up_us, state.holders)


def _step(step: StepChange) -> JobStepDocument:
    return JobStepDocument(
        before_us=step.before_us,
        after_us=step.after_us,
        saving_us=step.saving_us,
        margin_us=step.margin_us,
        distinguishable=step.distinguishable,
        unprofiled=step.unprofiled,
        not_comparable=step.why_not or None,
    )


def _change(change: JobChange) -> JobChangeDocument:
    first = change.site.first
    return JobChangeDocument(
        change=change.change,
        rule=first.rule,
        op=first.op,
        scope=first.scope,
        phase=first.phase,
        intended=change.site.intended,
        waits_more_or_less_often=change.how_often,
        waits_longer_or_shorter=change.how_long,
        on_other_ranks=change.other_ranks,
        before=_site(change.before),
        after=_site(change.after),
    )


def _site(site: JobSite | None) -> JobSiteDocument | None:
    if site is None:
        return None
    return JobSiteDocument(
        ids=tuple(dict.fromkeys(f.id for f in site.findings)),
        file=site.first.file or None,
        line=site.first.line or None,
        ranks=site.ranks,
        per_step=site.per_step,
        wait_us=site.wait_us,
        job_gain_us=site.gain_us,
    )
