"""From a Diff to the JSON that other programs rely on (schema `syncscan.diff/1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscan.model.diff import Diff, MovedWait, Promise, Site, SiteChange, State, StepChange
from syncscan.model.finding import Source
from syncscan.model.json_text import indented
from syncscan.report.diff_story import story_of
from syncscan.version import __version__

if TYPE_CHECKING:
    from syncscan.model.documents import (
        ChangeDocument,
        DiffDocument,
        MovedDocument,
        Place,
        PromiseDocument,
        SiteDocument,
        StateDocument,
        StepChangeDocument,
    )

SCHEMA = "syncscan.diff/1"


def render(diff: Diff) -> str:
    """The diff as indented JSON; all times in µs, means per step."""
    return indented(document(diff)) + "\n"


def document(diff: Diff) -> DiffDocument:
    """The diff as plain dicts and lists."""
    return {
        "schema": SCHEMA,
        "syncscan": __version__,
        "verdict": story_of(diff).verdict,
        "before": _state(diff.before),
        "after": _state(diff.after),
        "step": _step(diff.step),
        "promised": _promise(diff.promise),
        "moved": [_moved(m) for m in diff.moved],
        "changes": [_change(c) for c in diff.changes],
        "habits": [{"change": c.change.value, "rule": c.habit.rule, "scope": list(c.habit.scope)} for c in diff.habits],
        "notes": list(diff.notes),
    }


def _state(state: State) -> StateDocument:
    return {"paths": list(state.paths), "steps": state.steps, "device": state.device, "bound": state.bound}


def _step(step: StepChange) -> StepChangeDocument:
    return {
        "before_us": step.before_us,
        "after_us": step.after_us,
        "saving_us": step.saving_us,
        "margin_us": step.margin_us,
        "distinguishable": step.told,
        "unprofiled": step.unprofiled,
        "device_busy_us": {"before": step.device_us[0], "after": step.device_us[1]},
        "not_comparable": step.why_not or None,
    }


def _promise(promise: Promise | None) -> PromiseDocument | None:
    if promise is None:
        return None
    return {"saving_us": promise.saving_us, "range_us": list(promise.range_us), "kept": promise.kept.name.lower()}


def _moved(moved: MovedWait) -> MovedDocument:
    return {"to": moved.to.first.id, "us": moved.us, "before_us": moved.before_us, "after_us": moved.after_us}


def _change(change: SiteChange) -> ChangeDocument:
    first = change.site.first
    return {
        "change": change.change.value,
        "rule": first.rule,
        "op": first.where.op,
        "scope": list(first.where.scope),
        "phase": first.where.phase.value,
        "intended": change.site.intended,
        "waits_more_or_less_often": change.how_often,
        "waits_longer_or_shorter": change.how_long,
        "before": _site(change.before),
        "after": _site(change.after),
    }


def _site(site: Site | None) -> SiteDocument | None:
    if site is None:
        return None
    return {
        "ids": list(dict.fromkeys(f.id for f in site.findings)),
        "rules": list(dict.fromkeys(f.rule for f in site.findings)),
        "source": _source(site.first.where.source),
        "called_from": _source(site.first.where.in_library),
        "per_step": site.per_step,
        "wait_us": site.wait_us,
        "bubble_us": site.bubble_us,
        "recoverable_us": site.recoverable_us,
    }


def _source(source: Source | None) -> Place | None:
    if source is None:
        return None
    return {"file": source.file, "line": source.line, "function": source.function, "exact": source.exact}
