"""Describe a Diff: new, changed and removed syncs, where waits moved, and the change of step time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from syncscan.gate.differences import (
    Diff,
    DiffState,
    HabitChange,
    MovedWait,
    Promise,
    PromiseOutcome,
    Site,
    SiteChange,
    SiteStatus,
    StepChange,
)
from syncscan.model.finding import Finding
from syncscan.model.json_text import Document, about, indented, written
from syncscan.report import svg
from syncscan.report.blocks import Block, Heading, Item, Items, Sentence, Span, code, notes, strong, to_do
from syncscan.report.fleet_story import rank_phrase, runs
from syncscan.report.phrases import places, sentences, what, worth_more_compiled
from syncscan.report.step_picture import StepPicture
from syncscan.report.units import duration, percent, range_of, times, within
from syncscan.version import __version__

MARKS = {
    SiteStatus.NEW: Span("+", "bad"),
    SiteStatus.CHANGED: Span("~", "warn"),
    SiteStatus.GONE: Span("-", "good"),
    SiteStatus.OCCASIONAL: Span("?", "dim"),
}
TITLES = {
    SiteStatus.NEW: "New",
    SiteStatus.CHANGED: "Changed",
    SiteStatus.GONE: "Removed",
    SiteStatus.OCCASIONAL: "Not in every step: may be noise",
}
SHOWN = 20
"""Places that are listed of each kind, except on a page."""
WORKS = 0.05
"""Device work that changed by more than this fraction is reported: the two states then compute different things."""
HOLDERS = 4
"""Delaying ranks that are named."""
MOVES = 3
"""Moved waits that are listed one by one."""
_PROVE = "syncscan prove measures both alternately until the result is certain"
MOST_OF = 0.8
"""A wait has moved if at least this fraction of it appears elsewhere."""


def blocks(diff: Diff, picture: StepPicture | None = None) -> Iterator[Block]:
    yield Heading(f"{verdict(diff)}.", 1)
    yield Sentence(f"before: {_state(diff.before)}", "dim")
    yield Sentence(f"after: {_state(diff.after)}", "dim")
    yield from (to_do(f"{sentence}.") for sentence in _all_moved(diff))
    for sentence in (_step(diff), _held_up(diff), _promise(diff), _habits(diff)):
        if sentence:
            yield Sentence(sentence)
    if same := len(diff.of(SiteStatus.SAME)):
        yield Sentence(f"{_syncs(same)} {'is' if same == 1 else 'are'} as before.", "dim")
    yield from notes(diff.notes)
    if picture:
        yield svg.figure(picture, "A step of each")
    for kind, title in TITLES.items():
        if changes := diff.of(kind):
            yield Heading(title)
            yield Items(tuple(_item(change, diff) for change in changes), SHOWN)


def _state(state: DiffState) -> str:
    steps = f"{state.steps} step{'s' * (state.steps != 1)}"
    return " · ".join(part for part in (_recorded(state), steps, state.device) if part)


def _recorded(state: DiffState) -> str:
    if state.ranks is not None:
        return f"{state.ranks} rank{'s' * (state.ranks != 1)}"
    names = [PurePath(path).name or path for path in state.paths]
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def verdict(diff: Diff) -> str:
    """Return how many syncs differ, and whether their wait moved, without a full stop."""
    new, changed, removed = (len(diff.of(kind)) for kind in (SiteStatus.NEW, SiteStatus.CHANGED, SiteStatus.GONE))
    parts = []
    if new:
        parts.append(f"{_syncs(new)} added")
    if removed:
        parts.append(f"{_syncs(removed)} removed")
    if changed:
        parts.append(f"{_syncs(changed)} changed")
    if not parts:
        return "No sync differs"
    rest = "" if len(parts) == 3 or diff.habits or diff.unrelated else "; no others changed" if not diff.moved else ""
    sentence = ", ".join(parts) + rest
    if not diff.moved or not removed:
        return sentence
    most = sum(m.us for m in diff.moved) >= MOST_OF * diff.gone_wait_us
    won = diff.step.distinguishable and diff.step.saving_us > 0
    return f"{sentence}: {'the wait moved' if most else 'part of the wait moved'}{'' if won else ', with no net gain'}"


def _syncs(count: int) -> str:
    return f"{count} sync{'s' * (count != 1)}"


def _item(change: SiteChange, diff: Diff) -> Item:
    finding = change.site.first
    where = places(finding) or " › ".join(finding.scope)
    below = (code(where), _numbers(change, diff)) if where else (_numbers(change, diff),)
    return Item(strong(f"{finding.rule}: {what(finding)}"), below, MARKS[change.change])


def _numbers(change: SiteChange, diff: Diff) -> str:
    if change.before is None or change.after is None:
        site, verb = change.site, "waited" if change.after is None else "waits"
        ranks = _on(site, diff.before if change.after is None else diff.after)
        sentence = f"{verb} {duration(site.wait_us)} per step, {times(site.per_step)}{_would_save(change)}"
        return f"{ranks}, {sentence}" if ranks else sentence
    parts = []
    if change.other_ranks:
        parts.append(f"{_on(change.after, diff.after)}, {_on(change.before, diff.before)} before")
    if change.how_often:
        parts.append(f"waits {times(change.after.per_step)}, {times(change.before.per_step)} before")
    if change.how_long:
        parts.append(f"waits {duration(change.after.wait_us)} per step, {duration(change.before.wait_us)} before")
    return "; ".join(parts)


def _on(site: Site, state: DiffState) -> str:
    return rank_phrase(site.ranks, state.ranks) if state.ranks is not None else ""


def _would_save(change: SiteChange) -> str:
    gain, later = change.site.recoverable_us, change.site.once_compiled_us
    if gain is None:
        return ""
    ranges = [f.recoverable_range_us for f in change.site.findings if f.recoverable_range_us]
    limits = sum(low for low, _ in ranges), sum(high for _, high in ranges)
    saves = f"; removing it would {'have saved' if change.after is None else 'save'} {within(gain, limits)}"
    return f"{saves}, and {duration(later)} once compiled" if worth_more_compiled(later, gain) else saves


def _all_moved(diff: Diff) -> Iterator[str]:
    yield from (_moved(m, diff) for m in diff.moved[:MOVES])
    if more := diff.moved[MOVES:]:
        yield f"Moved to {len(more)} more places: {duration(sum(m.us for m in more))} of it"


def _moved(moved: MovedWait, diff: Diff) -> str:
    of = f"{duration(moved.us)} of the {duration(diff.gone_wait_us)} that the removed syncs waited"
    now = f"it waits {duration(moved.after_us)} per step, {duration(moved.before_us)} before"
    return f"Moved to {_name(moved.to)}: {of}; {now}"


def _name(finding: Finding) -> str:
    place = places(finding)
    return f"{what(finding)} ({place})" if place else what(finding)


def _step(diff: Diff) -> str:
    s = diff.step
    step = "The job's step" if diff.of_job else "The step"
    if s.why_not:
        return sentences(f"{step}'s time can't be compared", s.why_not)
    basis = "without the profiler" if s.unprofiled else "in the traces" if diff.of_job else "in the trace"
    took = f"{step} takes {duration(s.after_us)} {basis}, {duration(s.before_us)} before"
    if s.distinguishable:
        shorter = "shorter" if s.saving_us > 0 else "longer"
        part = percent(abs(s.saving_us), s.before_us)
        sentence = f"{took}: {duration(abs(s.saving_us))} {shorter} ({part}, ±{duration(s.margin_us)})"
    else:
        sentence = f"{took}: not distinguishable from noise (±{duration(s.margin_us)})"
    prove = "" if s.distinguishable or diff.of_job else _PROVE  # it starts no job
    return sentences(sentence, _uncertain(diff), _work(diff), _ahead(diff), prove)


def _ahead(diff: Diff) -> str:
    if diff.step.ahead_us is None or (diff.step.ahead_us[0] < 0) is (diff.step.ahead_us[1] < 0):
        return ""  # JSON has them
    before, after = (
        f"{duration(abs(us))} {'ahead of' if us >= 0 else 'behind'} the device" for us in diff.step.ahead_us
    )
    return f"At a step's median launch the host is {after}, {before} before"


def _held_up(diff: Diff) -> str:
    if not diff.of_job:
        return ""
    return f"The latest rank of a step delays the others by {_late(diff.after)}, {_late(diff.before)} before."


def _late(state: DiffState) -> str:
    if not state.holders or state.held_up_us is None:
        return "nothing measurable"
    ranks = ", ".join(runs(sorted(state.holders[:HOLDERS])))
    more = ", …" if len(state.holders) > HOLDERS else ""
    return f"{duration(state.held_up_us)} (rank{'s' * (len(state.holders) > 1)} {ranks}{more})"


def _uncertain(diff: Diff) -> str:
    s = diff.step
    if s.unprofiled or s.distinguishable or s.margin_us < 0.1 * s.before_us:
        return ""
    return "Profiler overhead varies: record with syncscan profile, or several times"


def _work(diff: Diff) -> str:
    before, after = diff.step.device_us
    if not before or abs(after - before) <= WORKS * before:
        return ""
    kind = "shrank" if after < before else "grew"
    return f"The device is busy {duration(after)} per step, {duration(before)} before: its workload {kind}"


def _habits(diff: Diff) -> str:
    parts = []
    for change, label in ((SiteStatus.GONE, "Habits removed"), (SiteStatus.NEW, "Habits added")):
        names = [_habit(c) for c in diff.habits if c.change is change]
        parts += [f"{label}: {', '.join(names)}"] if names else []
    return sentences(*parts)


def _habit(change: HabitChange) -> str:
    scope = change.scope
    return f"{change.rule} in {scope[-1]}" if scope else change.rule


def _promise(diff: Diff) -> str:
    p = diff.promise
    if p is None:
        return ""
    low, high = p.range_us
    saves = f"{within(p.saving_us, (low, high))} ({range_of((low, high))})"
    sentence = f"Removing these syncs was projected to save {'the job ' * diff.of_job}{saves}"
    if p.kept is PromiseOutcome.UNKNOWN:
        return sentences(sentence, "These recordings can't show whether it did")
    measured = f"measured: {duration(diff.step.saving_us)} ±{duration(diff.step.margin_us)}"
    return sentences(f"{sentence}; {measured}, {_KEPT[p.kept]}", *_beside(diff))


_KEPT = {
    PromiseOutcome.YES: "as projected",
    PromiseOutcome.LESS: "less than projected",
    PromiseOutcome.MORE: "more than projected",
}


def _beside(diff: Diff) -> Iterator[str]:
    if diff.of(SiteStatus.NEW):
        yield "The measured time includes the new syncs"


SCHEMA = "syncscan.diff/2"


class StepChangeDocument(StepChange, frozen=True, kw_only=True):
    """Change of the step's time; pairs are before and after."""

    saving_us: float
    distinguishable: Annotated[bool, about("whether the change is distinguishable from noise")]


class SiteDocument(Struct, frozen=True):
    """The findings at one place; times in µs per step."""

    findings: Annotated[tuple[Finding, ...], about("each once, the one that represents the place first")]
    ranks: Annotated[tuple[int, ...], about("ranks of a job that have it")]
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
    before: SiteDocument | None
    after: SiteDocument | None
    how_often: Annotated[bool, about("whether it waits more or less often")]
    how_long: Annotated[bool, about("whether it waits longer or shorter, by more than noise")]
    other_ranks: Annotated[bool, about("for jobs only: whether other ranks have it")]


class DiffDocument(Document, frozen=True):
    """The changes from one recording or job to another."""

    verdict: str
    before: DiffState
    after: DiffState
    step: StepChangeDocument
    promise: Promise | None
    moved: tuple[MovedWait, ...]
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
        step=written(StepChangeDocument, diff.step),
        moved=tuple(replace(m, to=m.to.without_evidence) for m in diff.moved),
        changes=tuple(written(ChangeDocument, c, before=_site(c.before), after=_site(c.after)) for c in diff.changes),
    )


def _site(site: Site | None) -> SiteDocument | None:
    if site is None:
        return None
    findings: dict[str, Finding] = {}
    for finding in site.findings:
        findings.setdefault(finding.id, finding.without_evidence)
    return written(SiteDocument, site, findings=tuple(findings.values()))
