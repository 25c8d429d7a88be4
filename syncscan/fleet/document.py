"""Render a Fleet as the JSON that other programs, `check` and `diff` rely on (schema `syncscan.fleet/2`)."""

from __future__ import annotations

from msgspec import Struct

from syncscan.fleet.saved import SCHEMA, without_replay
from syncscan.model.fleet import Fleet
from syncscan.model.json_text import Document, indented
from syncscan.report.fleet_story import FleetStory, HolderText, story_of
from syncscan.version import __version__


class JobRemedyDocument(Struct, frozen=True):
    """A sync to remove on all its ranks."""

    id: str
    saves: str
    range: str
    on: str


class FleetSaid(Struct, frozen=True):
    """The sentences of a job's other reports."""

    verdict: str
    reason: str
    summary: str
    holders: tuple[HolderText, ...]
    remedies: tuple[JobRemedyDocument, ...]
    then: tuple[str, ...]
    single_traces_get_wrong: tuple[str, ...]
    missing: str


class FleetDocument(Document, frozen=True):
    """The whole analysis of a job."""

    said: FleetSaid
    job: Fleet


def render(fleet: Fleet) -> str:
    """Return the job as indented JSON; times in µs, means per step, unless the name ends in `_ns`."""
    return indented(document(fleet)) + "\n"


def document(fleet: Fleet) -> FleetDocument:
    return FleetDocument(
        schema=SCHEMA, syncscan=__version__, said=_sentences(story_of(fleet)), job=without_replay(fleet)
    )


def _sentences(story: FleetStory) -> FleetSaid:
    return FleetSaid(
        verdict=story.verdict,
        reason=story.reason,
        summary=story.summary,
        holders=story.holders,
        remedies=tuple(
            JobRemedyDocument(holder.of.id, holder.saves, holder.doubt, holder.on) for holder in story.remedies
        ),
        then=story.then,
        single_traces_get_wrong=story.wrong,
        missing=story.missing,
    )
