"""Check a job against a project's rules: the same limits as for one trace, over all ranks.

Syncs and waits are those of the rank with the most; savings, and delays between ranks, are fractions of the job's step.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from syncscan.errors import UsageError
from syncscan.gate.baseline import Baseline, baseline_among, known_among
from syncscan.gate.fleet_sites import as_finding, most_often, sites_of
from syncscan.gate.limits import DEFAULT, HAIR, SortedOut, sort_out, still_known, within
from syncscan.gate.sites import Key
from syncscan.gate.written import SourceText, Written
from syncscan.model.check import CheckVerdict, Limit, Rules, Violation
from syncscan.model.duration import duration
from syncscan.model.finding import Finding
from syncscan.model.fleet import STRETCHED, Fleet, LateCause

Places = dict[Key, tuple[float, tuple[Finding, ...]]]
NO_RACES = (
    "Races weren't checked, as a job's traces are joined without them: check a rank's trace by itself, or a dry run, "
    "`syncscan dryrun -o NAME.syncscan.json …`."
)


def check_fleet(
    fleet: Fleet, rules: Rules, baseline: Baseline, source_text: SourceText, today: datetime.date
) -> CheckVerdict:
    """Check a job against the rules of its project.

    Args:
        rules: limits and exceptions; none may be by owner, which a job's findings don't tell.
        baseline: what was known before, of a job or of one trace.
        source_text: where comments are looked for.
        today: an exception counts up to the day on which it expires.

    Raises:
        UsageError: a limit is by owner.
    """
    for limit in rules.limits:
        if limit.by == "owner":
            raise UsageError(
                f"A job's findings don't record whose code they are in, so {limit} can't be checked.", "Leave it out."
            )
    known, unmatched = known_among(baseline, _places(fleet))
    sorted_out = sort_out(_findings(fleet), rules, known, Written(source_text), today)
    limits = rules.limits or ((DEFAULT,) if rules.races is None else ())
    return CheckVerdict(
        path=_name(fleet),
        violations=(*_unseen(fleet), *(v for x in limits for v in _violations(x, sorted_out.counted, fleet))),
        counted=sorted_out.counted,
        exempt=sorted_out.exempt,
        notes=(
            *sorted_out.notes,
            *_lacking(fleet),
            *_doubts(fleet, limits),
            *([] if rules.races is None else [NO_RACES]),
        ),
        unused=(*sorted_out.unused, *(still_known(entry) for entry in unmatched)),
    )


def baseline_of_fleet(fleet: Fleet, rules: Rules, source_text: SourceText, today: datetime.date) -> Baseline:
    """Return a baseline of every sync of the job, except those that are exempt anyway."""
    counted: SortedOut = sort_out(_findings(fleet), rules, {}, Written(source_text), today)
    ids = {f.id for f in counted.counted}
    return baseline_among({k: place for k, place in _places(fleet).items() if any(f.id in ids for f in place[1])})


def _findings(fleet: Fleet) -> list[Finding]:
    often = most_often(fleet)
    return [as_finding(f, often.get(f.id, f.first.per_step)) for f in fleet.findings]


def _places(fleet: Fleet) -> Places:
    """Return each site that isn't intended: waits per step on the rank with the most, and its findings."""
    often, places = most_often(fleet), {}
    for key, members in sites_of(fleet.findings).items():
        if not key.intended:
            findings = tuple(as_finding(f, often.get(f.id, f.first.per_step)) for f in members)
            places[key] = sum(f.per_step for f in findings), findings
    return places


def _name(fleet: Fleet) -> str:
    return f"job of {len(fleet.ranks)} rank{'s' * (len(fleet.ranks) != 1)}"


def _lacking(fleet: Fleet) -> Iterator[str]:
    """Yield what couldn't be checked because it is unreadable."""
    if fleet.missing:
        count, of = len(fleet.missing), fleet.world_size
        have, were = ("has", "was") if count == 1 else ("have", "were")
        yield f"{count} of {of} ranks {have} no readable trace and {were} not checked."
    if fleet.unread:
        yield f"{len(fleet.unread)} trace{'s' * (len(fleet.unread) != 1)} couldn't be read."


def _doubts(fleet: Fleet, limits: Sequence[Limit]) -> Iterator[str]:
    """Yield a note if the profiler may be why a rank delays the job."""
    if any(limit.held_up is not None for limit in limits) and (fleet.stretch or 0.0) > STRETCHED:
        yield f"The profiler makes the step {fleet.stretch:.1f} times as long: without it, other ranks may be late."


def _unseen(fleet: Fleet) -> Iterator[Violation]:
    """Yield a violation for traces without device work: they would pass every limit, but prove nothing."""
    if not any(rank.of.busy_us or rank.of.communication_us for rank in fleet.ranks):
        why = "No rank's trace has device work, so syncs can't be seen: nothing was checked."
        yield Violation(limit=DEFAULT, sentence=why, findings=())


def _violations(limit: Limit, counted: Sequence[Finding], fleet: Fleet) -> Iterator[Violation]:
    selected = tuple(f for f in counted if within(limit, f))
    worst = tuple(sorted(selected, key=lambda f: (-(f.gain.recoverable_us if f.gain else 0.0), -f.wait_us)))
    for sentence in _exceeded(limit, selected, fleet):
        yield Violation(limit=limit, sentence=sentence, findings=worst)
    if limit.held_up is not None:
        yield from _held_up(limit, limit.held_up, selected, fleet)


def _exceeded(limit: Limit, selected: Sequence[Finding], fleet: Fleet) -> Iterator[str]:
    if not selected:
        return
    if limit.syncs is not None:
        syncs, rank = _most(fleet, selected, "per_step")
        if syncs > limit.syncs + HAIR:
            many = "" if f"{syncs:.3g}" == "1" else "s"
            yield f"{limit}: rank {rank} has {syncs:.3g} sync{many} per step; the limit is {limit.syncs:g}"
    if limit.wait_ms is not None:
        wait, rank = _most(fleet, selected, "wait_us")
        if any(member.of.wait_us is None for member in fleet.ranks):
            yield f"{limit}: how long each rank waits is unknown; the limit is {limit.wait_ms:g} ms"
        elif wait / 1e3 > limit.wait_ms + HAIR:
            yield f"{limit}: rank {rank} waits {duration(wait)} per step; the limit is {limit.wait_ms:g} ms"
    if limit.recoverable is not None:
        yield from _too_much_to_gain(limit, limit.recoverable, selected, fleet)


def _most(fleet: Fleet, selected: Sequence[Finding], field: str) -> tuple[float, int]:
    """Return the largest sum of a field over these findings on one rank, and that rank."""
    ids = {f.id for f in selected}
    sums = [(sum(getattr(f, field) for f in rank.of.findings if f.id in ids), -rank.number) for rank in fleet.ranks]
    most, rank = max(sums, default=(0.0, 0))
    return most, -rank


def _too_much_to_gain(limit: Limit, allowed: float, selected: Sequence[Finding], fleet: Fleet) -> Iterator[str]:
    """Yield a sentence if the findings' joint gain, between the best single one and that of all, exceeds the limit."""
    if not fleet.baseline_us or fleet.recoverable_us is None:
        yield f"{limit}: the job's savings from removing its syncs are unknown"
        return
    saves = "removing its syncs would save the job"
    real = {f.id for f in fleet.findings if not f.first.intended}
    every = fleet.recoverable_us / fleet.baseline_us
    gains = [f.gain.recoverable_us / fleet.baseline_us for f in selected if f.gain]
    one = len(selected) == 1 and len(gains) == 1
    exact = gains[0] if one else every if {f.id for f in selected} >= real else None
    if exact is not None:
        if exact > allowed + HAIR:
            yield f"{limit}: {saves} {exact:.2%} of its step; the limit is {allowed:.2%}"
        return
    least = max(gains, default=0.0)
    if least > allowed + HAIR:
        yield f"{limit}: {saves} {least:.2%} of its step or more; the limit is {allowed:.2%}"
    elif every > allowed + HAIR:
        between = f"between {least:.2%} and {every:.2%}"
        yield f"{limit}: {saves} {between} of its step; the limit is {allowed:.2%}"


def _held_up(limit: Limit, allowed: float, selected: Sequence[Finding], fleet: Fleet) -> Iterator[Violation]:
    """Yield a violation of the limit on delays: of the whole step for any reason, or only behind the selected syncs."""
    if not fleet.matched:
        why = f"{limit}: which rank delays the job is unknown, since no collective of its ranks could be matched"
        yield Violation(limit=limit, sentence=why, findings=())
        return
    by_id = {f.id: f for f in selected}
    behind = [x for x in fleet.lateness if x.cause is LateCause.SYNC and x.finding in by_id]
    counts = behind if limit.by else fleet.lateness
    part = sum(x.late_us for x in counts) / max(1, len(fleet.steps)) / (fleet.observed_us or 1.0)
    if part > allowed + HAIR:
        worst = max(counts, key=lambda x: x.late_us)
        late = f"the latest ranks delay the job for {part:.2%} of its step, rank {worst.rank} the most"
        guilty = tuple(by_id[id] for id in dict.fromkeys(x.finding for x in behind))
        yield Violation(limit=limit, sentence=f"{limit}: {late}; the limit is {allowed:.2%}", findings=guilty)
