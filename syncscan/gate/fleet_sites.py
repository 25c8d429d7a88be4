"""Group the findings of a job into sites: those at one place, over rules and ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from syncscan.gate.sites import NOWHERE, Key, unnumbered, without_vendor
from syncscan.model.finding import Attribution, Cause, Confidence, Diagnosis, Finding, Gain, Phase, Severity, Source
from syncscan.model.fleet import Fleet, JobFinding
from syncscan.model.rank import RankFinding

_CAUSES = {cause.value: cause for cause in Cause}
_PHASES = {phase.value: phase for phase in Phase}


def sites_of(findings: Sequence[JobFinding]) -> dict[Key, tuple[JobFinding, ...]]:
    """Return the sites of one job's findings."""
    groups: defaultdict[Key, list[JobFinding]] = defaultdict(list)
    for finding in findings:
        groups[_key(finding.first)].append(finding)
    return {key: tuple(members) for key, members in groups.items()}


def most_often(fleet: Fleet) -> Mapping[str, float]:
    """Return, by finding id, the waits per step of the rank with the most."""
    often: defaultdict[str, float] = defaultdict(float)
    for rank in fleet.ranks:
        for f in rank.of.findings:
            often[f.id] = max(often[f.id], f.per_step)
    return often


def as_finding(f: JobFinding, per_step: float) -> Finding:
    """Return a job's finding in the form that limits and their reports accept; its gain is the job's."""
    first = f.first
    return Finding(
        id=first.id,
        diagnosis=Diagnosis(
            rule=first.rule,
            name=first.rule,
            cause=_CAUSES.get(first.cause, Cause.UNKNOWN),
            title=first.title,
            why="",
            fix=first.fix,
            when_fine="",
            intended=first.intended,
        ),
        where=_attribution(first),
        severity=Severity.INFO if first.intended else Severity.LOW,
        confidence=Confidence.HIGH,
        api=first.op,
        count=0,
        per_step=per_step,
        wait_us=f.wait_us or 0.0,
        bubble_us=f.bubble_us or 0.0,
        occurrences=(),
        gain=None if f.gain_us is None else Gain(f.gain_us, f.range_us or (f.gain_us, f.gain_us), 0.0),
    )


def _attribution(f: RankFinding) -> Attribution:
    return Attribution(
        op=f.op,
        op_stack=(),
        scope=f.scope,
        module=(),
        source=Source(f.file, f.line, f.function, exact=True) if f.file else None,
        framework=None,
        owner="unknown",
        phase=_PHASES.get(f.phase, Phase.OTHER),
        thread="",
        step=None,
        path=f.file,
    )


def _key(f: RankFinding) -> Key:
    return Key(
        scope=tuple(map(unnumbered, f.scope)),
        op=without_vendor(f.op),
        phase=f.phase,
        intended=f.intended,
        user=(f.file, f.line, f.function) if f.file else NOWHERE,
        in_library=NOWHERE,
        exact=True,
    )
