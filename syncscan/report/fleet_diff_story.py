"""Derive a job diff's story: syncs that appeared, disappeared or changed on which ranks, who delays the job, its step.

Names are as recorded: each renderer escapes them.
"""

from __future__ import annotations

import msgspec

from syncscan.model.diff import SiteStatus, StepChange
from syncscan.model.fleet_diff import FleetDiff, JobChange, JobSite, JobState
from syncscan.report.diff_story import ChangeText
from syncscan.report.fleet_story import rank_phrase, runs, whereabouts
from syncscan.report.phrases import sentences
from syncscan.report.units import duration, percent, range_of, times, within

SIGNS = {SiteStatus.NEW: "+", SiteStatus.CHANGED: "~", SiteStatus.GONE: "-"}
TITLES = {SiteStatus.NEW: "New", SiteStatus.CHANGED: "Changed", SiteStatus.GONE: "Removed"}
_HOLDERS = 4
"""Delaying ranks that are named."""


class FleetDiffStory(msgspec.Struct, frozen=True, kw_only=True):
    """The report on two states of a job, in the order in which it is read."""

    before: str
    after: str
    verdict: str
    step: str
    held_up: str
    promise: str
    changes: dict[SiteStatus, tuple[ChangeText, ...]]
    same: str
    notes: tuple[str, ...]


def story_of(diff: FleetDiff) -> FleetDiffStory:
    """Return the story of two states of a job."""
    texts = {kind: tuple(_change_text(c, diff) for c in diff.of(kind)) for kind in TITLES}
    same = len(diff.of(SiteStatus.SAME))
    return FleetDiffStory(
        before=_state(diff.before),
        after=_state(diff.after),
        verdict=_verdict(diff),
        step=_step(diff.step),
        held_up=_held_up(diff),
        promise=_promise(diff),
        changes={kind: changes for kind, changes in texts.items() if changes},
        same=f"{_syncs(same)} {'is' if same == 1 else 'are'} as before" if same else "",
        notes=diff.notes,
    )


def _state(state: JobState) -> str:
    return f"{state.ranks} rank{'s' * (state.ranks != 1)} · {state.steps} step{'s' * (state.steps != 1)}"


def _verdict(diff: FleetDiff) -> str:
    verbs = {SiteStatus.NEW: "added", SiteStatus.GONE: "removed", SiteStatus.CHANGED: "changed"}
    parts = []
    for kind, verb in verbs.items():
        if count := len(diff.of(kind)):
            parts.append(f"{_syncs(count)} {verb}")
    return ", ".join(parts) or "No sync differs"


def _syncs(count: int) -> str:
    return f"{count} sync{'s' * (count != 1)}"


def _step(s: StepChange) -> str:
    if s.why_not:
        return sentences("The job's step can't be compared", s.why_not)
    basis = "without the profiler" if s.unprofiled else "in the traces"
    took = f"The job's step takes {duration(s.after_us)} {basis}, {duration(s.before_us)} before"
    if not s.distinguishable:
        return f"{took}: not distinguishable from noise (±{duration(s.margin_us)})."
    shorter = "shorter" if s.saving_us > 0 else "longer"
    part = percent(abs(s.saving_us), s.before_us)
    return f"{took}: {duration(abs(s.saving_us))} {shorter} ({part}, ±{duration(s.margin_us)})."


def _held_up(diff: FleetDiff) -> str:
    return f"The latest rank of a step delays the others by {_late(diff.after)}, {_late(diff.before)} before."


def _late(state: JobState) -> str:
    if not state.holders:
        return "nothing measurable"
    ranks = ", ".join(runs(sorted(state.holders[:_HOLDERS])))
    more = ", …" if len(state.holders) > _HOLDERS else ""
    return f"{duration(state.held_up_us)} (rank{'s' * (len(state.holders) > 1)} {ranks}{more})"


def _promise(diff: FleetDiff) -> str:
    if diff.promise is None:
        return ""
    saves = f"{within(diff.promise.saving_us, diff.promise.range_us)} ({range_of(diff.promise.range_us)})"
    sentence = f"Removing these syncs was projected to save the job {saves}"
    measured = f"{duration(diff.step.saving_us)} ±{duration(diff.step.margin_us)}"
    if diff.step.why_not:
        return f"{sentence}."
    return f"{sentence}; measured: {measured}, {diff.promise.kept.value}."


def _change_text(change: JobChange, diff: FleetDiff) -> ChangeText:
    first = change.site.first
    return ChangeText(
        sign=SIGNS[change.change],
        what=f"{first.rule}: {first.title}",
        where=whereabouts(first),
        numbers=_numbers(change, diff),
    )


def _numbers(change: JobChange, diff: FleetDiff) -> str:
    before, after = change.before, change.after
    if before is None or after is None:
        site, count = change.site, (diff.after if before is None else diff.before).ranks
        verb = "waits" if before is None else "waited"
        sentence = f"{rank_phrase(site.ranks, count)}, {verb} {duration(site.wait_us)} per step, {times(site.per_step)}"
        return sentence + _would_save(site, removed=after is None)
    parts = []
    if change.other_ranks:
        was = rank_phrase(before.ranks, diff.before.ranks)
        parts.append(f"{rank_phrase(after.ranks, diff.after.ranks)}, {was} before")
    if change.how_often:
        parts.append(f"waits {times(after.per_step)}, {times(before.per_step)} before")
    if change.how_long:
        parts.append(f"waits {duration(after.wait_us)} per step, {duration(before.wait_us)} before")
    return "; ".join(parts)


def _would_save(site: JobSite, removed: bool) -> str:
    if site.gain_us is None:
        return ""
    limits = next((f.range_us for f in site.findings if f.gain_us == site.gain_us), None)
    saves = within(site.gain_us, limits)
    return f"; removing it would {'have saved' if removed else 'save'} the job {saves}"
