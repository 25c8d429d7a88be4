"""Join the ranks of a job, each analyzed on its own, to a Fleet: matched, aligned and replayed together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from syncscan.fleet.collectives_and_clocks import Members, clocks_of, match_collectives, members_of
from syncscan.fleet.job_gains import JobProjector
from syncscan.fleet.lateness import (
    CollectiveArrivals,
    LateParts,
    critical_path,
    lateness,
    lateness_by_step,
    match_arrivals,
    waited_ns,
)
from syncscan.model.finding import Cause, Finding, Severity
from syncscan.model.fleet import STRETCHED, Fleet, JobRank, Unread
from syncscan.model.rank import RankAnalysis

REPLAYED, REPLAYED_OF_MANY = 100, 12
"""Costliest findings that are each removed from the whole job; fewer where a replay takes long."""


def join(ranks: Sequence[RankAnalysis], unread: Sequence[Unread] = ()) -> Fleet:
    """Join the ranks of one job; a UsageError where they aren't of one job, of the same steps, of one capture."""
    members = members_of(ranks)
    matched, unmatched = match_collectives(members)
    clocks, corrected = clocks_of(members, matched)
    all_arrivals = match_arrivals(members, matched, clocks)
    all_lateness = lateness_by_step(all_arrivals)
    observed_us = median(member.of.observed_us for member in members.ranks)
    timed = [member.of.unprofiled_us for member in members.ranks if member.of.unprofiled_us]
    unprofiled_us = median(timed) if timed else None
    replayable = all(member.of.graph for member in members.ranks)
    projector = JobProjector(members, all_arrivals, unprofiled_us) if replayable else None
    findings = _findings(members, projector)
    removable = _removable(members, {f.id for f in findings})
    gain_us, range_us = None, None
    if projector:
        gain_us, range_us = projector.gain(removable) if findings else (0.0, (0.0, 0.0))
    return Fleet(
        ranks=_ranks(members, corrected, all_arrivals, all_lateness),
        world_size=members.world_size,
        missing=members.missing,
        unread=tuple(unread),
        steps=members.steps,
        observed_us=observed_us,
        unprofiled_us=unprofiled_us,
        lateness=lateness(members, all_lateness, observed_us),
        path=critical_path(members, all_arrivals, clocks),
        findings=findings,
        baseline_us=projector.baseline_us if projector else None,
        recoverable_us=gain_us,
        recoverable_range_us=range_us,
        matched=len(matched),
        unmatched=unmatched,
        notes=tuple(_notes(members, len(matched), unmatched, corrected, findings, projector)),
    )


def _ranks(
    members: Members,
    corrected: Mapping[int, int],
    all_arrivals: Sequence[CollectiveArrivals],
    all_lateness: Mapping[tuple[int, int], LateParts],
) -> tuple[JobRank, ...]:
    holds: defaultdict[int, float] = defaultdict(float)
    for (_, rank), parts in all_lateness.items():
        holds[rank] += sum(parts.values())
    waits, steps = waited_ns(all_arrivals), 1e3 * max(1, len(members.steps))
    return tuple(
        replace(
            m,
            clock_ns=corrected.get(rank, 0),
            holds_us=holds[rank] / steps,
            waits_us=waits.get(rank, 0.0) / steps,
        )
        for rank, m in enumerate(members.ranks)
    )


def _findings(members: Members, projector: JobProjector | None) -> tuple[Finding, ...]:
    """Return the findings merged by id over the ranks, by the job's gain."""
    held_by: defaultdict[str, dict[int, Finding]] = defaultdict(dict)
    for place, member in enumerate(members.ranks):
        for finding in member.of.findings:
            if not finding.intended:
                held_by[finding.id].setdefault(place, finding)
    cost_us = {id: sum(f.waited_us + f.idle_us for f in by.values()) for id, by in held_by.items()}
    costliest = sorted(held_by, key=lambda id: (-cost_us[id], id))
    most = REPLAYED_OF_MANY if projector and projector.many else REPLAYED
    findings = [_finding(members, held_by[id], projector if k < most else None) for k, id in enumerate(costliest)]
    return tuple(sorted(findings, key=lambda f: (-round(f.recoverable_us or 0.0, 3), -f.waited_us, f.id)))


def _finding(members: Members, by_rank: Mapping[int, Finding], projector: JobProjector | None) -> Finding:
    """Return the finding of the lowest rank with the figures of all that have it, and with the job's gain."""
    of_job = replace(
        by_rank[min(by_rank)],
        ranks=tuple(members.ranks[place].number for place in sorted(by_rank)),
        per_step=max(f.per_step for f in by_rank.values()),
        wait_us=_most(f.wait_us for f in by_rank.values()),
        bubble_us=_most(f.bubble_us for f in by_rank.values()),
        moved_us=None,
        once_compiled_us=None,
        alone_us=_most(f.recoverable_us for f in by_rank.values()),
        recoverable_us=None,
        recoverable_range_us=None,
        severity=Severity.LOW,
    )
    if projector is None:
        return of_job
    return of_job.gaining(*projector.gain(_removable(members, {of_job.id})), projector.baseline_us)


def _most(times: Iterable[float | None]) -> float | None:
    return max((us for us in times if us is not None), default=None)


def _removable(members: Members, ids: set[str]) -> dict[int, frozenset[int]]:
    """Return the numbers of these findings on each rank, by its index."""
    return {
        place: frozenset(number for number, finding in enumerate(member.of.findings) if finding.id in ids)
        for place, member in enumerate(members.ranks)
    }


def _notes(
    members: Members,
    matched: int,
    unmatched: int,
    corrected: Mapping[int, int],
    findings: Sequence[Finding],
    projector: JobProjector | None,
) -> list[str]:
    notes = []
    if not matched:
        notes.append("No collective is in the traces of all its ranks, so it is unknown which rank waits for which.")
    if members.missing or (unmatched and matched):
        notes.append(
            f"{unmatched} collectives are missing in a rank's trace: they keep their recorded duration, "
            "even if that rank would arrive earlier."
        )
    if unaligned := [m.number for place, m in enumerate(members.ranks) if place not in corrected]:
        ranks = ", ".join(map(str, unaligned[:8]))
        notes.append(f"Ranks {ranks} share no collective with the first: their clocks are used as recorded.")
    stretched = [m.of.observed_us / m.of.unprofiled_us for m in members.ranks if m.of.unprofiled_us]
    if stretched and median(stretched) > STRETCHED:
        notes.append(
            f"The profiler stretched the step {median(stretched):.1f} times: without it, "
            "another rank's host may be the late one. Gains refer to the step without the profiler."
        )
    if projector is None:
        lacking = [m for m in members.ranks if m.of.graph is None]
        why = lacking[0].of.reason or "nothing was launched in its steps"
        notes.append(f"The job can't be replayed: rank {lacking[0].number} can't ({why}).")
    elif not projector.known:
        notes.append(
            "No trace holds the step's time without the profiler: gains are fractions of the profiled step, and the "
            "profiler's share of its host time is an estimate, covered by the ranges."
        )
    if projector and len(projector.ranks) < len(members.ranks):
        notes.append(
            f"{len(projector.ranks)} of the {len(members.ranks)} ranks are replayed: those that arrived last at "
            "a collective, and the latest of each kind."
        )
    if projector and any(f.cause is Cause.SHAPE for f in findings):
        notes.append("Kernels after a data-dependent shape are kept: a replacement may compute more or less.")
    if projector and any(f.recoverable_us is None for f in findings):
        notes.append("Because the job is large, gains were projected for the costliest findings only.")
    return notes
