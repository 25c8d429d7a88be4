"""From a Fleet to the JSON that other programs, `check` and `diff` rely on (schema `syncscan.fleet/1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscan.model.fleet import Fleet
from syncscan.model.json_text import indented
from syncscan.model.saved_fleet import SCHEMA
from syncscan.model.saved_fleet import document as job_of
from syncscan.report.fleet_story import FleetStory, ToldHolder, story_of
from syncscan.version import __version__

if TYPE_CHECKING:
    from syncscan.model.documents import FleetDocument, FleetSaid, HolderDocument


def render(fleet: Fleet) -> str:
    """The job as indented JSON; times in µs, means a step, unless the name ends in `_ns`."""
    return indented(document(fleet)) + "\n"


def document(fleet: Fleet) -> FleetDocument:
    """What is said of the job, and the job, as plain dicts and lists."""
    return {"schema": SCHEMA, "syncscan": __version__, "said": _said(story_of(fleet)), "job": job_of(fleet)}


def _said(story: FleetStory) -> FleetSaid:
    """The words of the other reports."""
    return {
        "verdict": story.verdict,
        "reason": story.reason,
        "summary": story.summary,
        "holders": [_holder(holder) for holder in story.holders],
        "remedies": [
            {"id": told.of.id, "saves": told.saves, "range": told.doubt, "on": told.on} for told in story.remedies
        ],
        "then": list(story.then),
        "single_traces_get_wrong": list(story.wrong),
        "missing": story.missing,
    }


def _holder(told: ToldHolder) -> HolderDocument:
    cause = told.cause.value if told.cause else None
    return {"rank": told.rank, "late": told.late, "steps": told.steps, "cause": cause, "why": told.why}
