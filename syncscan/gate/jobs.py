"""A job of many ranks, as checks and diffs read it: figures are those of the rank with the most, gains the job's."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from syncscan import features
from syncscan.errors import UsageError
from syncscan.gate.differences import DiffState, Site
from syncscan.gate.matched_sites import Key, key_of, site_of
from syncscan.gate.recordings import Recordings
from syncscan.gate.state import HAIR, GainShare, State, Timing
from syncscan.gate.verdict import Limit, Rules, Violation
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.fleet import STRETCHED, Fleet, LateCause

if TYPE_CHECKING:
    from syncscan.cli.analysis_options import AnalysisOptions
    from syncscan.model.fleet import Fleet


NO_RACES = (
    "Races weren't checked, as a job's traces are joined without them: check a rank's trace by itself, or a dry run, "
    "`syncscan dryrun -o NAME.syncscan.json …`."
)


class JobState(State):
    """The ranks of a job in one state."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        count = len(fleet.ranks)
        self.name = f"job of {count} rank{'s' * (count != 1)}"
        self.size = fleet.world_size or count
        self.steps_by = frozenset(rank.of.numbered for rank in fleet.ranks)
        self.waits_withheld = any(rank.of.wait_us is None for rank in fleet.ranks)
        late: defaultdict[int, float] = defaultdict(float)
        for entry in fleet.lateness:
            late[entry.rank] += entry.late_us
        self.facts = DiffState(
            paths=tuple(rank.of.path for rank in fleet.ranks),
            steps=len(fleet.steps),
            device="",
            bound="",
            ranks=count,
            held_up_us=sum(late.values()) / max(1, len(fleet.steps)),
            holders=tuple(sorted(late, key=lambda rank: (-late[rank], rank))),
        )

    @property
    def findings(self) -> Sequence[Finding]:
        return self.fleet.findings

    @cached_property
    def sites(self) -> Mapping[Key, Site]:
        groups: defaultdict[Key, list[Finding]] = defaultdict(list)
        for finding in self.findings:
            groups[key_of(finding)].append(finding)
        return {
            key: site_of(findings, 1, {0: (sum(f.per_step for f in findings), sum(f.waited_us for f in findings))})
            for key, findings in groups.items()
        }

    @property
    def timings(self) -> Sequence[Timing]:
        """The job's step; each recorded one as the median over the ranks."""
        fleet = self.fleet
        times: defaultdict[int, list[float]] = defaultdict(list)
        for rank in fleet.ranks:
            for step in rank.of.steps:
                times[step.number].append((step.end - step.begin) / 1e3)
        return [
            Timing(
                observed_us=fleet.observed_us,
                unprofiled_us=fleet.unprofiled_us,
                device_us=max((rank.of.busy_us for rank in fleet.ranks), default=0.0),  # collectives wait for others
                steps_us=[statistics.median(times[number]) for number in fleet.steps if times[number]],
            )
        ]

    def projected(self, removed: Sequence[Site]) -> Sequence[GainShare]:
        """Return what was projected without these sites: exact for one finding or all, bounded for several."""
        fleet, findings = self.fleet, [f for site in removed for f in site.findings]
        gains = [(f.recoverable_us or 0.0, f.recoverable_range_us) for f in findings if f.recoverable_range_us]
        if not gains or not fleet.baseline_us or fleet.recoverable_us is None or fleet.recoverable_range_us is None:
            return []
        saving, (low, high) = max(gains)
        if len(findings) == len(self.findings):
            saving, (low, high) = fleet.recoverable_us, fleet.recoverable_range_us
        elif len(findings) > 1:
            saving = min(sum(gain for gain, _ in gains), fleet.recoverable_us)
            high = fleet.recoverable_range_us[1]
        return [(saving / fleet.baseline_us, low / fleet.baseline_us, max(high, saving) / fleet.baseline_us)]

    def most(self, selected: Sequence[Finding], field: str) -> tuple[float, str]:
        """Return the largest sum of a field over these findings on one rank, and that rank."""
        ids = {f.id for f in selected}
        sums = {
            rank.number: sum(getattr(f, field) or 0.0 for f in rank.of.findings if f.id in ids)
            for rank in self.fleet.ranks
        }
        worst = max(sums, key=lambda number: (sums[number], -number), default=0)
        return sums.get(worst, 0.0), f"rank {worst}"

    def saved(self, selected: Sequence[Finding]) -> tuple[float, float] | None:
        """Return the fraction of the job's step: for several findings between the best single gain and that of all."""
        fleet = self.fleet
        if not fleet.baseline_us or fleet.recoverable_us is None:
            return None
        every = fleet.recoverable_us / fleet.baseline_us
        gains = [f.recoverable_us / fleet.baseline_us for f in selected if f.recoverable_us is not None]
        if len(selected) == 1 and gains:
            return gains[0], gains[0]
        return (every, every) if len(selected) == len(self.findings) else (max(gains, default=0.0), every)

    def unseen(self) -> str:
        """Return whether no rank has device work: the job would pass every limit, but prove nothing."""
        if any(rank.of.busy_us or rank.of.communication_us for rank in self.fleet.ranks):
            return ""
        return "No rank's trace has device work, so syncs can't be seen: nothing was checked."

    def delays(self, limit: Limit, selected: Sequence[Finding]) -> Iterator[Violation]:
        """Yield the violation of a limit on delays: for any reason, or with a selector only behind these syncs."""
        fleet = self.fleet
        if limit.held_up is None:
            return
        if not fleet.matched:
            why = f"{limit}: which rank delays the job is unknown, since no collective of its ranks could be matched"
            yield Violation(limit=limit, sentence=why)
            return
        ids = {f.id for f in selected}
        behind = [x for x in fleet.lateness if x.cause is LateCause.SYNC and x.finding in ids]
        counts = behind if limit.by else fleet.lateness
        part = sum(x.late_us for x in counts) / max(1, len(fleet.steps)) / (fleet.observed_us or 1.0)
        if part > limit.held_up + HAIR:
            worst = max(counts, key=lambda x: x.late_us)
            late = f"the latest ranks delay the job for {part:.2%} of its step, rank {worst.rank} the most"
            guilty = tuple(dict.fromkeys(x.finding for x in behind))
            sentence = f"{limit}: {late}; the limit is {limit.held_up:.2%}"
            yield Violation(limit=limit, sentence=sentence, findings=guilty)

    def doubts(self, rules: Rules) -> Iterator[str]:
        """Yield which traces weren't checked, and whether the profiler may be why a rank is late."""
        missing, unread, stretch = len(self.fleet.missing), len(self.fleet.unread), self.fleet.stretch or 0.0
        if missing:
            have, were = ("has", "was") if missing == 1 else ("have", "were")
            yield f"{missing} of {self.fleet.world_size} ranks {have} no readable trace and {were} not checked."
        if unread:
            yield f"{unread} trace{'s' * (unread != 1)} couldn't be read."
        if any(limit.held_up is not None for limit in rules.limits) and stretch > STRETCHED:
            yield f"The profiler makes the step {stretch:.1f} times as long: without it, other ranks may be late."
        if rules.races is not None:
            yield NO_RACES

    def lacks(self, name: str) -> Iterator[str]:
        """Yield which ranks have no trace, and whether the job has no replay."""
        if self.fleet.missing:
            yield f"The job {name} is missing the traces of {len(self.fleet.missing)} ranks."
        if not self.fleet.replayed:
            yield f"The job {name} can't be replayed, so the cost of its syncs to the job is unknown."


def state_of(of: Analysis | Fleet) -> State:
    """Return a recording or a job as checks read it."""
    return JobState(of) if isinstance(of, Fleet) else Recordings([of])


def is_job(fleet: bool, paths: Sequence[str]) -> bool:
    """Return whether the option `--fleet` or the name of a saved job says that these are a job's."""
    if "fleet" not in features.rooms():
        if fleet:
            raise UsageError("--fleet needs syncscan fleet, which isn't installed.", "Leave it out.")
        return False
    from syncscan.fleet.job import is_saved

    return fleet or is_saved(paths)


def job_of(paths: Sequence[str], analysis_options: AnalysisOptions) -> Fleet:
    from syncscan.fleet.job import fleet_from

    return fleet_from(paths, analysis_options)
