"""Describe a Fleet: who delays the job and what to change, then its ranks and findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from syncscan.fleet import picture as fleet_picture
from syncscan.model.fleet import Fleet, JobRank, RankFrom
from syncscan.report.blocks import (
    Block,
    Figure,
    Grid,
    GridColumn,
    Heading,
    Item,
    Items,
    Sentence,
    Span,
    Stacked,
    Words,
    code,
    command,
    strong,
    to_do,
)  # fmt: skip
from syncscan.report.fleet_story import (
    SHORT_CAUSES,
    HolderText,
    finding_texts,
    gaining,
    headline,
    story_of,
    unread,
)
from syncscan.report.phrases import places, waited
from syncscan.report.story import FindingText
from syncscan.report.units import duration, times

WORST = 3
"""Changes that the first screen lists."""
SHOWN = 20
"""Findings, sentences and unreadable traces that are listed, except on a page."""
ALL_RANKS = 16
"""Most ranks of a report that lists each; a larger job shows outliers and quantiles."""
OUTLIERS = 8
"""Ranks of a larger job that are shown one by one."""
FIGURES = (
    "delays\nothers",
    "waits for\nothers",
    "waits for\nits device",
    "idle\nafter",
    "exposed\ncommunication",
    "gains\nalone",
)
"""Figures of each rank, µs per step: how much later than the others it arrives, how long it waits in collectives, how
long its host is blocked, how long its device is idle after syncs, how long only collectives run on it, and what its
trace alone suggests it could gain."""


def blocks(fleet: Fleet) -> Iterator[Block]:
    story, findings = story_of(fleet), finding_texts(fleet)
    yield Heading(f"{story.verdict}.", 1)
    yield Sentence(" · ".join(headline(fleet)), "dim")
    yield Sentence(story.reason)
    if story.missing:
        yield Sentence((Span("! ", "warn"), story.missing))
    yield Sentence(story.summary)
    yield from map(to_do, story.then)
    if remedies := gaining(findings, fleet):
        yield Heading("What to change, by the gain of the whole job")
        yield Items(tuple(_remedy(number, t) for number, t in enumerate(remedies, 1)), WORST)
    if picture := fleet_picture.picture_of(fleet):
        draw = partial(fleet_picture.markup, fleet, picture)
        yield Figure("Late ranks, step by step", draw, ("fleet.css",))
    yield from _all_ranks(fleet, story.holders)
    yield from _findings(findings)
    if story.single_traces_get_wrong:
        yield Heading("What a single rank's trace gets wrong")
        yield Items(tuple(map(Item, story.single_traces_get_wrong)), SHOWN)
    if fleet.unread:
        yield Heading("Traces left out")
        yield Items(tuple(Item((code(path), f": {reason}")) for path, reason in unread(fleet)), SHOWN)
    if fleet.notes:
        yield Heading("Notes")
        yield Items(tuple(map(Item, fleet.notes)))
    if fleet.ranks:
        yield Sentence(("Next: ", command(_next(fleet, story.holders))))


def _next(fleet: Fleet, holders: Sequence[HolderText]) -> tuple[str, ...]:
    """Return the command for the trace of the rank that delays the others, or for the first rank's trace."""
    first = holders[0].rank if holders else fleet.ranks[0].number
    path = next((r.of.path for r in fleet.ranks if r.number == first), fleet.ranks[0].of.path)
    return "syncscan", "analyze", path, "-o", f"rank{first}.html"


def _remedy(number: int, t: FindingText) -> Item:
    gain = "; ".join(part for part in (t.share, t.doubt) if part)
    where = places(t.of) or t.where
    what = f"{t.of.title} ({where})" if where else t.of.title
    return Item((strong(t.saves), f" ({gain})" if gain else "", f", {t.on}: {what}"), mark=Span(f"{number}."))


def _findings(findings: Sequence[FindingText]) -> Iterator[Block]:
    if not findings:
        return
    yield Heading("Syncs of all ranks, by the gain of the whole job")
    columns = (
        *(GridColumn(name, right=True) for name in ("gains\nthe job", "waits", "idle\nafter")),
        GridColumn("what; ranks, rule, where, range"),
    )
    yield Grid(columns, tuple(map(_finding, findings)), SHOWN)
    fixes = dict.fromkeys((t.of.rule, t.of.fix) for t in findings)
    yield Heading("What to write instead (for details: syncscan explain RULE)")
    yield Items(tuple(Item((code(rule), f": {fix}")) for rule, fix in fixes), WORST)


def _finding(t: FindingText) -> tuple[Words | Stacked, ...]:
    saves = f"{t.saves} ({t.share})" if t.share else t.saves
    beside = " · ".join(part for part in (t.on, times(t.of.per_step), t.of.rule, t.doubt) if part)
    return saves, t.waits, t.idle, Stacked((strong(t.of.title), code(t.where), Span(beside, "dim")))


def _all_ranks(fleet: Fleet, holders: Sequence[HolderText]) -> Iterator[Block]:
    ranks: Sequence[JobRank] = fleet.ranks
    if len(ranks) > ALL_RANKS:
        outliers = [holder.rank for holder in holders[:OUTLIERS]]
        ranks = [rank for rank in ranks if rank.number in outliers]
    if ranks:
        causes = {holder.rank: SHORT_CAUSES[holder.cause] if holder.cause else "late too" for holder in holders}
        names = (GridColumn("rank", right=True), *(GridColumn(name, right=True) for name in FIGURES))
        yield Heading("Ranks (mean per step)")
        yield Grid((*names, GridColumn("late by")), tuple(_rank(rank, causes.get(rank.number, "")) for rank in ranks))
    if len(fleet.ranks) > ALL_RANKS:
        yield Heading("All ranks (mean per step)")
        names = tuple(GridColumn(name, right=True) for name in ("least", "median", "95%", "most", "rank"))
        yield Grid((GridColumn(), *names), tuple(_quantiles(fleet)))


def figures(rank: JobRank) -> tuple[float | None, ...]:
    """Return a rank's figures in the order of `FIGURES`, µs per step; None where the trace can't tell."""
    of = rank.of
    return (rank.holds_us, rank.waits_us, of.wait_us, of.bubble_us, of.communication_us, of.recoverable_us)


def _rank(rank: JobRank, why: str) -> tuple[Words, ...]:
    by = "" if rank.numbered_from is RankFrom.TRACE else f"(rank by {rank.numbered_from.value})"
    cells = (str(rank.number), *map(waited, figures(rank)), f"{why} {by}".strip())
    return tuple(map(strong, cells)) if why else cells


def _quantiles(fleet: Fleet) -> Iterator[tuple[str, ...]]:
    """Yield the distribution of each figure over the ranks: least, median, 95th percentile, most, and whose that is."""
    for column, name in enumerate(FIGURES):
        ranked = sorted((us, -rank.number) for rank in fleet.ranks if (us := figures(rank)[column]) is not None)
        if ranked:
            places = (0, (len(ranked) - 1) // 2, math.ceil(0.95 * len(ranked)) - 1, -1)
            yield name.replace("\n", " "), *(duration(ranked[k][0]) for k in places), str(-ranked[-1][1])
