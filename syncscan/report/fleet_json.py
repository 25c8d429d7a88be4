"""From a Fleet to the JSON that other programs, `check` and `diff` rely on (schema `syncscan.fleet/1`)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from syncscan.model.fleet import Fleet
from syncscan.model.json_text import indented
from syncscan.model.saved_fleet import SCHEMA
from syncscan.model.saved_fleet import document as job_of
from syncscan.report.document import Document
from syncscan.report.fleet_story import FleetStory, ToldHolder, story_of
from syncscan.version import __version__


class HolderDocument(Struct, frozen=True):
    """A rank that holds the others up."""

    rank: int
    late: str
    steps: int
    cause: str | None
    why: str


class JobRemedyDocument(Struct, frozen=True):
    """A sync to remove on all its ranks."""

    id: str
    saves: str
    range: str
    on: str


class FleetSaid(Struct, frozen=True):
    """The words of a job's other reports."""

    verdict: str
    reason: str
    summary: str
    holders: tuple[HolderDocument, ...]
    remedies: tuple[JobRemedyDocument, ...]
    then: tuple[str, ...]
    single_traces_get_wrong: tuple[str, ...]
    missing: str


class FleetDocument(Document, frozen=True):
    """All that was found out about a job."""

    said: FleetSaid
    job: Any


def render(fleet: Fleet) -> str:
    """The job as indented JSON; times in µs, means a step, unless the name ends in `_ns`."""
    return indented(document(fleet)) + "\n"


def document(fleet: Fleet) -> FleetDocument:
    """Return what is said of the job, and the job."""
    return FleetDocument(schema=SCHEMA, syncscan=__version__, said=_said(story_of(fleet)), job=job_of(fleet))


def _said(story: FleetStory) -> FleetSaid:
    return FleetSaid(
        verdict=story.verdict,
        reason=story.reason,
        summary=story.summary,
        holders=tuple(_holder(told) for told in story.holders),
        remedies=tuple(JobRemedyDocument(told.of.id, told.saves, told.doubt, told.on) for told in story.remedies),
        then=story.then,
        single_traces_get_wrong=story.wrong,
        missing=story.missing,
    )


def _holder(told: ToldHolder) -> HolderDocument:
    return HolderDocument(told.rank, told.late, told.steps, told.cause.value if told.cause else None, told.why)
