"""From a FleetDiff to the JSON that other programs rely on (schema `syncscan.fleet-diff/1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscan.model.diff import Promise, StepChange
from syncscan.model.fleet_diff import FleetDiff, JobChange, JobSite, JobState
from syncscan.model.json_text import indented
from syncscan.report.fleet_diff_story import story_of
from syncscan.version import __version__

if TYPE_CHECKING:
    from syncscan.model.documents import (
        FleetDiffDocument,
        JobChangeDocument,
        JobSiteDocument,
        JobStateDocument,
        JobStepDocument,
        PromiseDocument,
    )

SCHEMA = "syncscan.fleet-diff/1"


def render(diff: FleetDiff) -> str:
    """The two states of a job as indented JSON; all times in µs, means a step."""
    return indented(document(diff)) + "\n"


def document(diff: FleetDiff) -> FleetDiffDocument:
    """The same as plain dicts and lists."""
    return {
        "schema": SCHEMA,
        "syncscan": __version__,
        "verdict": story_of(diff).verdict,
        "before": _state(diff.before),
        "after": _state(diff.after),
        "step": _step(diff.step),
        "promised": _promise(diff.promise),
        "changes": [_change(c) for c in diff.changes],
        "notes": list(diff.notes),
    }


def _state(state: JobState) -> JobStateDocument:
    return {
        "ranks": state.ranks,
        "steps": state.steps,
        "held_up_us": state.held_up_us,
        "holders": list(state.holders),
    }


def _step(step: StepChange) -> JobStepDocument:
    return {
        "before_us": step.before_us,
        "after_us": step.after_us,
        "saving_us": step.saving_us,
        "margin_us": step.margin_us,
        "distinguishable": step.told,
        "unprofiled": step.unprofiled,
        "not_comparable": step.why_not or None,
    }


def _promise(promise: Promise | None) -> PromiseDocument | None:
    if promise is None:
        return None
    return {"saving_us": promise.saving_us, "range_us": list(promise.range_us), "kept": promise.kept.name.lower()}


def _change(change: JobChange) -> JobChangeDocument:
    first = change.site.first
    return {
        "change": change.change.value,
        "rule": first.rule,
        "op": first.op,
        "scope": list(first.scope),
        "phase": first.phase,
        "intended": change.site.intended,
        "waits_more_or_less_often": change.how_often,
        "waits_longer_or_shorter": change.how_long,
        "on_other_ranks": change.other_ranks,
        "before": _site(change.before),
        "after": _site(change.after),
    }


def _site(site: JobSite | None) -> JobSiteDocument | None:
    if site is None:
        return None
    return {
        "ids": list(dict.fromkeys(f.id for f in site.findings)),
        "file": site.first.file or None,
        "line": site.first.line or None,
        "ranks": list(site.ranks),
        "per_step": site.per_step,
        "wait_us": site.wait_us,
        "job_gain_us": site.gain_us,
    }
