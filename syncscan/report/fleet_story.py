"""Derive a job's story: who delays it and why, what removing each sync gains, rank by rank.

All renderers share a story. Names are as recorded: each renderer escapes them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.fleet import STRETCHED, Fleet, JobRank, LateCause, Lateness
from syncscan.report.phrases import measurable, places, saving, sentences, spread, whereabouts
from syncscan.report.story import FindingText, costs_of
from syncscan.report.units import duration, percent, within

CAUSES = {
    LateCause.SYNC: "its device is idle after a sync",
    LateCause.KERNELS: "its kernels take longer",
    LateCause.INPUT: "its DataLoader takes longer",
    LateCause.HOST: "its host is slower",
    LateCause.BEFORE: "it was late before the recording began",
}
SHORT_CAUSES = {
    LateCause.SYNC: "a sync",
    LateCause.KERNELS: "kernels",
    LateCause.INPUT: "input",
    LateCause.HOST: "host",
    LateCause.BEFORE: "an earlier delay",
}
_REMEDIES = {
    LateCause.KERNELS: "kernels take longer: balance the work between ranks, or find what slows its device",
    LateCause.INPUT: "DataLoader takes longer: give it more workers, or give each batch less work",
    LateCause.HOST: "host takes longer, but not because of a sync: look at what it does",
}
"""Advice on a rank that is late for another reason than a sync, following its name."""
ALIKE = 0.5
"""A rank that is never the latest is also reported if it delays the job by this fraction of the worst rank's delay."""
RUNS = 4
"""Runs of consecutive ranks that are listed; more are counted."""


class HolderText(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that delays the others."""

    rank: int
    late: str
    share: str
    steps: int
    """Number of steps in which this rank arrived last."""
    cause: LateCause | None
    """Why it is late; None for a rank that is never the latest."""
    why: str
    """Reason in words, e.g. `its kernels take longer`; for a sync, its title and place."""
    explained: int
    """Number of steps in which that is the largest reason."""


class FleetStory(msgspec.Struct, frozen=True, kw_only=True):
    """The sentences of every report on a job, in the order in which they are read; JSON has them as they are."""

    verdict: str
    """Who delays the job, without a full stop."""
    reason: str
    summary: str
    """How many places wait, and how much shorter the job's step would be without them."""
    holders: tuple[HolderText, ...]
    remedies: tuple[str, ...]
    """Ids of the syncs whose removal gains the job something measurable, largest first."""
    then: tuple[str, ...]
    """Further advice, on ranks that are late for other reasons than syncs."""
    single_traces_get_wrong: tuple[str, ...]
    """Errors of single-rank traces, one sentence each, largest first."""
    missing: str


def story_of(fleet: Fleet) -> FleetStory:
    """Return the story of a job; fields that can't be determined are empty."""
    holders, findings = tuple(_holders(fleet)), finding_texts(fleet)
    remedies = tuple(t.of.id for t in gaining(findings, fleet))
    return FleetStory(
        verdict=_verdict(fleet, holders),
        reason=_reason(fleet, holders),
        summary=_summary(fleet),
        holders=holders,
        remedies=remedies,
        then=tuple(_then(fleet, holders, bool(remedies))),
        single_traces_get_wrong=tuple(_all_wrong(findings)),
        missing=_missing(fleet),
    )


def finding_texts(fleet: Fleet) -> tuple[FindingText, ...]:
    return tuple(_finding(number, f, fleet) for number, f in enumerate(fleet.findings))


def gaining(findings: Iterable[FindingText], fleet: Fleet) -> list[FindingText]:
    """Return the findings whose removal gains the job something measurable."""
    return [t for t in findings if t.of.recoverable_us is not None and measurable(t.of.recoverable_us, fleet.step_us)]


def unread(fleet: Fleet) -> list[tuple[str, str]]:
    """Return the path of each unreadable trace, and why."""
    return [(trace.path, trace.reason.removeprefix(f"{trace.path}: ")) for trace in fleet.unread]


def rank_phrase(ranks: Sequence[int], count: int) -> str:
    """Return ascending ranks as text: `on 512 of 512`, `only on rank 0`, `on ranks 0-7`, `on 5 of 512: 0, 3, 17-19`."""
    if len(ranks) == count and count > 1:
        return f"on {count} of {count}"
    if len(ranks) == 1:
        return f"only on rank {ranks[0]}" if count > 1 else f"on rank {ranks[0]}"
    parts = runs(ranks)
    if len(parts) == 1:
        return f"on ranks {parts[0]}"
    more = ", …" if len(parts) > RUNS else ""
    return f"on {len(ranks)} of {count}: {', '.join(parts[:RUNS])}{more}"


def runs(numbers: Iterable[int]) -> list[str]:
    """Return ascending numbers as runs: `0-7`, `9`."""
    pairs: list[list[int]] = []
    for number in numbers:
        if pairs and number == pairs[-1][1] + 1:
            pairs[-1][1] = number
        else:
            pairs.append([number, number])
    return [f"{first}-{last}" if last > first else str(first) for first, last in pairs]


# who delays the job


def headline(fleet: Fleet) -> Iterator[str]:
    if folder := _folder([r.of.path for r in fleet.ranks]):
        yield folder
    count = len(fleet.ranks)
    partly = fleet.world_size is not None and fleet.world_size != count
    yield f"{count} of {fleet.world_size} ranks" if partly else f"{count} rank{'s' * (count != 1)}"
    known = f" ({duration(fleet.unprofiled_us)} unprofiled)" if fleet.unprofiled_us else ""
    steps = len(fleet.steps)
    yield f"{steps} step{'s' * (steps != 1)} of {duration(fleet.observed_us)}{known}"


def _folder(paths: Sequence[str]) -> str:
    parts = [path.replace("\\", "/").split("/")[:-1] for path in paths]
    common = takewhile(lambda names: len(set(names)) == 1, zip(*parts, strict=False))
    return next((names[0] for names in reversed(list(common)) if names[0] not in ("", ".")), "")


def _holders(fleet: Fleet) -> Iterator[HolderText]:
    entries: defaultdict[int, list[Lateness]] = defaultdict(list)
    for entry in fleet.lateness:
        entries[entry.rank].append(entry)
    most = max((rank.holds_us for rank in fleet.ranks), default=0.0)
    for rank in sorted(fleet.ranks, key=lambda rank: (-rank.holds_us, rank.number)):
        worth = rank.number in entries or rank.holds_us >= ALIKE * most
        if worth and measurable(rank.holds_us, fleet.observed_us):
            yield _holder(fleet, rank, entries[rank.number])


def _holder(fleet: Fleet, rank: JobRank, entries: Sequence[Lateness]) -> HolderText:
    causes: Counter[tuple[LateCause, str]] = Counter()
    for entry in entries:
        causes[entry.cause, entry.finding] += round(entry.late_us * 1e3)
    known = Counter({cause: late for cause, late in causes.items() if cause[0] is not LateCause.BEFORE}) or causes
    cause, finding = known.most_common(1)[0][0] if known else (None, "")
    return HolderText(
        rank=rank.number,
        late=duration(rank.holds_us),
        share=percent(rank.holds_us, fleet.observed_us),
        steps=len({entry.step for entry in entries}),
        cause=cause,
        why=_why(fleet, cause, finding) if cause else "",
        explained=len({entry.step for entry in entries if (entry.cause, entry.finding) == (cause, finding)}),
    )


def _why(fleet: Fleet, cause: LateCause, finding: str) -> str:
    first = next((f for f in fleet.findings if f.id == finding), None)
    if cause is not LateCause.SYNC or first is None:
        return CAUSES[cause]
    return f"{CAUSES[cause]}, {first.title}{f' ({places(first)})' if places(first) else ''}"


def _verdict(fleet: Fleet, holders: Sequence[HolderText]) -> str:
    if not fleet.matched:
        return "Which rank delays the job is unknown"
    if not holders:
        return "No rank delays the others"
    sentence = _who(holders)
    return (
        f"Under the profiler {sentence[0].lower()}{sentence[1:]}"
        if any(_doubted(fleet, h) for h in holders)
        else sentence
    )


def _who(holders: Sequence[HolderText]) -> str:
    if len(holders) == 1:
        return f"Rank {holders[0].rank} delays the job by {holders[0].late} per step ({holders[0].share})"
    if len(holders) > RUNS:
        first = holders[0]
        return f"{len(holders)} ranks delay the job, rank {first.rank} the most: {first.late} per step ({first.share})"
    names = [str(holder.rank) for holder in holders]
    delays = ", ".join(holder.late for holder in holders)
    return f"Ranks {', '.join(names[:-1])} and {names[-1]} delay the job: by {delays} per step"


def _doubted(fleet: Fleet, holder: HolderText) -> bool:
    """Return whether a rank may be late only because the profiler slows its host."""
    return holder.cause is LateCause.HOST and (fleet.stretch or 0.0) > STRETCHED


def _reason(fleet: Fleet, holders: Sequence[HolderText]) -> str:
    if len(fleet.ranks) < 2:
        return "Only one rank's trace was given."
    if not fleet.matched:
        return "No collective of one rank's trace could be matched with another's."
    if not holders:
        every = f"{fleet.matched} collective{'s' * (fleet.matched != 1)}"
        return f"At the {every} that the traces share, the last rank is less than 1% of a step late."
    if len(holders) == 1:
        return sentences(f"It {_holder_phrase(holders[0], len(fleet.steps))}")
    if len(holders) == 2:
        return sentences(*(f"Rank {holder.rank} {_holder_phrase(holder, len(fleet.steps))}" for holder in holders))
    latest = [f"{h.rank} in {h.steps} ({SHORT_CAUSES[h.cause]})" for h in holders if h.cause]
    more = ", …" if len(latest) > 2 * RUNS else ""
    return f"Latest rank in {len(fleet.steps)} steps: {', '.join(latest[: 2 * RUNS])}{more}."


def _holder_phrase(holder: HolderText, steps: int) -> str:
    if not holder.why:
        return "arrives late, but is never the latest of a step"
    last = f"arrives last in {holder.steps} of {steps} step{'s' * (steps != 1)}"
    if holder.explained == holder.steps:
        return f"{last}: {holder.why}"
    return f"{last}, in {holder.explained} of them because {holder.why}"


# what to change


def _summary(fleet: Fleet) -> str:
    count = len(fleet.findings)
    if not count:
        return "No host-device syncs found on any rank."
    places = "1 place blocks the host" if count == 1 else f"{count} places block the host"
    if fleet.recoverable_us is None:
        return f"{places}; the gain of removing them can't be replayed for the whole job."
    them, us, whole = "it" if count == 1 else "them", fleet.recoverable_us, fleet.step_us
    return f"{places}; without {them} the job's step is {_shorter(us, fleet.recoverable_range_us, whole)}."


def _shorter(us: float, limits: tuple[float, float] | None, step: float) -> str:
    doubt = spread(limits, step) if limits and measurable(limits[1], step) else ""
    if not measurable(us, step):
        return f"{saving(us, step)} shorter{f' ({doubt})' if doubt else ''}"
    return f"{within(us, limits)} shorter ({percent(us, step)}{f'; {doubt}' if doubt else ''})"


def _then(fleet: Fleet, holders: Sequence[HolderText], gains: bool) -> Iterator[str]:
    for holder in holders[:RUNS]:
        if _doubted(fleet, holder):
            stretch = f"the profiler makes this step {fleet.stretch:.1f} times as long"
            yield f"Rank {holder.rank}'s host takes longer, but {stretch}: without it, another rank may be the last."
        elif holder.cause in _REMEDIES and 2 * holder.steps >= len(fleet.steps):
            yield f"Rank {holder.rank}'s {_REMEDIES[holder.cause]}."
    if fleet.findings and fleet.replayed and not gains:
        together = fleet.recoverable_us is not None and measurable(fleet.recoverable_us, fleet.step_us)
        yield (
            "Removing a single sync gains the job nothing; only removing all of them does."
            if together
            else ("Removing syncs gains the job nothing measurable.")
        )


def _all_wrong(findings: Sequence[FindingText]) -> Iterator[str]:
    wrong = [t for t in findings if t.wrong]
    wrong.sort(key=lambda t: -abs((t.of.alone_us or 0.0) - (t.of.recoverable_us or 0.0)))
    for t in wrong:
        where = f" ({places(t.of)})" if places(t.of) else ""
        yield f"{t.of.title}{where}: {t.wrong}."


def _finding(number: int, f: Finding, fleet: Fleet) -> FindingText:
    saves, share, doubt, waits, idle = costs_of(f, fleet.step_us)
    return FindingText(
        of=f,
        number=number,
        where=whereabouts(f),
        saves=saves,
        share=share,
        doubt=doubt,
        waits=waits,
        idle=idle,
        on=rank_phrase(f.ranks, len(fleet.ranks)),
        wrong=_wrong(f, fleet.step_us),
    )


def _wrong(f: Finding, step: float) -> str:
    """Return the claim of a single rank's trace, where it lies measurably outside of the job's range."""
    if f.alone_us is None or f.recoverable_us is None or f.recoverable_range_us is None:
        return ""
    low, high = f.recoverable_range_us
    if low <= f.alone_us <= high or not measurable(abs(f.alone_us - f.recoverable_us), step):
        return ""
    whose = f"rank {f.ranks[0]}'s trace alone projects" if len(f.ranks) == 1 else "one trace alone projects"
    return f"{whose} {saving(f.alone_us, step)}, the job gains {saving(f.recoverable_us, step, f.recoverable_range_us)}"


def _missing(fleet: Fleet) -> str:
    if not fleet.missing:
        return ""
    missing = runs(fleet.missing)
    more = f" and {len(missing) - 2 * RUNS} more runs" if len(missing) > 2 * RUNS else ""
    ranks, have = ("Rank", "has") if len(fleet.missing) == 1 else ("Ranks", "have")
    of = f" ({len(fleet.missing)} of {fleet.world_size})" if len(fleet.missing) > 1 else ""
    return f"{ranks} {', '.join(missing[: 2 * RUNS])}{more} {have} no readable trace{of}."
