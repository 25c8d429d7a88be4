"""From a job and the rules of a project to a verdict: the same limits as of one trace, counted over all ranks.

Syncs and waits are those of the rank that has the most; what removing them would save, and how long ranks hold each
other up, are parts of the job's step.
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
from syncscan.model.check import Limit, Rules, Verdict, Violation
from syncscan.model.finding import Finding
from syncscan.model.fleet import STRETCHED, Cause, Fleet

Places = dict[Key, tuple[float, tuple[Finding, ...]]]


def check_fleet(
    fleet: Fleet, rules: Rules, baseline: Baseline, source_text: SourceText, today: datetime.date
) -> Verdict:
    """Hold a job to the rules of its project.

    Args:
        fleet: the job.
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
                f"A job's findings don't tell whose code they are: {limit} can't be held.", "Leave it out."
            )
    known, gone = known_among(baseline, _places(fleet))
    sorted_out = sort_out(_findings(fleet), rules, known, Written(source_text), today)
    limits = rules.limits or (DEFAULT,)
    return Verdict(
        path=_name(fleet),
        violations=(*_unseen(fleet), *(v for x in limits for v in _violations(x, sorted_out.counted, fleet))),
        counted=sorted_out.counted,
        exempt=sorted_out.exempt,
        notes=(*sorted_out.notes, *_lacking(fleet), *_doubts(fleet, limits)),
        unused=(*sorted_out.unused, *(still_known(entry) for entry in gone)),
    )


def baseline_of_fleet(fleet: Fleet, rules: Rules, source_text: SourceText, today: datetime.date) -> Baseline:
    """What is to be known from now on: every sync of the job but for those that are exempt anyway."""
    counted: SortedOut = sort_out(_findings(fleet), rules, {}, Written(source_text), today)
    ids = {f.id for f in counted.counted}
    return baseline_among({k: place for k, place in _places(fleet).items() if any(f.id in ids for f in place[1])})


def _findings(fleet: Fleet) -> list[Finding]:
    often = most_often(fleet)
    return [as_finding(f, often.get(f.id, f.first.per_step)) for f in fleet.findings]


def _places(fleet: Fleet) -> Places:
    """Each site that isn't meant: how often it waits where it does the most, and its findings."""
    often, places = most_often(fleet), {}
    for key, found in sites_of(fleet.findings).items():
        if not key.intended:
            findings = tuple(as_finding(f, often.get(f.id, f.first.per_step)) for f in found)
            places[key] = sum(f.per_step for f in findings), findings
    return places


def _name(fleet: Fleet) -> str:
    return f"job of {len(fleet.ranks)} rank{'s' * (len(fleet.ranks) != 1)}"


def _lacking(fleet: Fleet) -> Iterator[str]:
    """What wasn't held to the limits, as nobody could read it."""
    if fleet.missing:
        count, of = len(fleet.missing), fleet.world_size
        yield f"{count} of {of} ranks lack{'s' * (count == 1)} a trace that can be read: nothing of them was checked."
    if fleet.unread:
        yield f"{len(fleet.unread)} trace{'s' * (len(fleet.unread) != 1)} couldn't be read."


def _doubts(fleet: Fleet, limits: Sequence[Limit]) -> Iterator[str]:
    """That who delays the job may be the profiler's doing."""
    if any(limit.held_up is not None for limit in limits) and (fleet.stretch or 0.0) > STRETCHED:
        yield f"The profiler makes the step {fleet.stretch:.1f} times as long: without it ranks may be late otherwise."


def _unseen(fleet: Fleet) -> Iterator[Violation]:
    """Traces in which no device works keep every limit, and prove nothing."""
    if not any(rank.of.busy_us or rank.of.communication_us for rank in fleet.ranks):
        why = "No rank's trace has work of a device, so that no sync can be seen: nothing was checked."
        yield Violation(limit=DEFAULT, sentence=why, findings=())


def _violations(limit: Limit, counted: Sequence[Finding], fleet: Fleet) -> Iterator[Violation]:
    found = tuple(f for f in counted if within(limit, f))
    worst = tuple(sorted(found, key=lambda f: (-(f.gain.recoverable_us if f.gain else 0.0), -f.wait_us)))
    for sentence in _exceeded(limit, found, fleet):
        yield Violation(limit=limit, sentence=sentence, findings=worst)
    if limit.held_up is not None:
        yield from _held_up(limit, limit.held_up, found, fleet)


def _exceeded(limit: Limit, found: Sequence[Finding], fleet: Fleet) -> Iterator[str]:
    if not found:
        return
    if limit.syncs is not None:
        syncs, rank = _most(fleet, found, "per_step")
        if syncs > limit.syncs + HAIR:
            many, allowed = "" if f"{syncs:.3g}" == "1" else "s", "is" if limit.syncs == 1 else "are"
            yield f"{limit}: rank {rank} has {syncs:.3g} sync{many} a step, and {limit.syncs:g} {allowed} allowed"
    if limit.wait_ms is not None:
        wait, rank = _most(fleet, found, "wait_us")
        if any(member.of.wait_us is None for member in fleet.ranks):
            yield f"{limit}: how long each rank waits can't be told, and {limit.wait_ms:g} ms are allowed"
        elif wait / 1e3 > limit.wait_ms + HAIR:
            yield f"{limit}: rank {rank} waits {wait / 1e3:.3g} ms a step, and {limit.wait_ms:g} ms are allowed"
    if limit.recoverable is not None:
        yield from _too_much_to_gain(limit, limit.recoverable, found, fleet)


def _most(fleet: Fleet, found: Sequence[Finding], what: str) -> tuple[float, int]:
    """The most that these are of on one rank, and which."""
    ids = {f.id for f in found}
    sums = [(sum(getattr(f, what) for f in rank.of.findings if f.id in ids), -rank.number) for rank in fleet.ranks]
    most, rank = max(sums, default=(0.0, 0))
    return most, -rank


def _too_much_to_gain(limit: Limit, allowed: float, found: Sequence[Finding], fleet: Fleet) -> Iterator[str]:
    """Together they gain at least what the best alone does, and at most what all findings of the job do."""
    if not fleet.baseline_us or fleet.recoverable_us is None:
        yield f"{limit}: what removing its syncs would save the job can't be told"
        return
    saves = "removing its syncs would save the job"
    real = {f.id for f in fleet.findings if not f.first.intended}
    every = fleet.recoverable_us / fleet.baseline_us
    gains = [f.gain.recoverable_us / fleet.baseline_us for f in found if f.gain]
    one = len(found) == 1 and len(gains) == 1
    exact = gains[0] if one else every if {f.id for f in found} >= real else None
    if exact is not None:
        if exact > allowed + HAIR:
            yield f"{limit}: {saves} {exact:.2%} of its step, and {allowed:.2%} are allowed"
        return
    least = max(gains, default=0.0)
    if least > allowed + HAIR:
        yield f"{limit}: {saves} {least:.2%} of its step or more, and {allowed:.2%} are allowed"
    elif every > allowed + HAIR:
        between = f"between {least:.2%} and {every:.2%}"
        yield f"{limit}: {saves} {between} of its step, and {allowed:.2%} are allowed"


def _held_up(limit: Limit, allowed: float, found: Sequence[Finding], fleet: Fleet) -> Iterator[Violation]:
    """Of the whole step for whatever reason, of some syncs only behind these."""
    if not fleet.matched:
        why = f"{limit}: who delays the job can't be told, as no collective of its ranks could be matched"
        yield Violation(limit=limit, sentence=why, findings=())
        return
    by_id = {f.id: f for f in found}
    behind = [x for x in fleet.lateness if x.cause is Cause.SYNC and x.finding in by_id]
    counts = behind if limit.by else fleet.lateness
    part = sum(x.late_us for x in counts) / max(1, len(fleet.steps)) / (fleet.observed_us or 1.0)
    if part > allowed + HAIR:
        worst = max(counts, key=lambda x: x.late_us)
        late = f"the latest ranks delay the job for {part:.2%} of its step, rank {worst.rank} the most"
        guilty = tuple(by_id[id] for id in dict.fromkeys(x.finding for x in behind))
        yield Violation(limit=limit, sentence=f"{limit}: {late}, and {allowed:.2%} are allowed", findings=guilty)
