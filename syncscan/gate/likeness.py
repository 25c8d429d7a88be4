"""From a dry run and a recording to its findings in the order of what they cost there, matched as a diff matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.gate.match import matched
from syncscan.gate.sites import sites_of
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.likeness import Counterpart, Likeness
from syncscan.model.trace import NONE, Trace

A_NUMBER = 8
"""Bytes of the largest single number: a copy of no more tells nothing about the sizes of a program's tensors."""
_Pair = tuple[list[Finding], list[Finding]]


def liken(dry: Analysis, recording: Analysis) -> Analysis:
    """The dry run with what its findings cost in a recording, in that order; those that it lacks come last.

    Args:
        dry: analysis of a dry run.
        recording: of a recording of the same code, of this size or another.
    """
    pairs = list(_pairs(dry, recording))
    counterparts = {f.id: _counterpart(f, pair, dry.trace, recording) for pair in pairs for f in pair[0] if pair[1]}
    seen = {f.id for here, there in pairs if here for f in there}
    info, step = recording.trace.info, recording.step
    likeness = Likeness(
        path=info.path,
        device=info.devices[0] if info.devices else "",
        steps=step.count,
        step_us=step.unprofiled_us or step.observed_us,
        recoverable_us=step.recoverable_us,
        range_us=step.recoverable_range_us,
        counterparts=counterparts,
        unseen=tuple(f for f in recording.findings if f.id not in seen and f.severity is not Severity.INFO),
    )
    return replace(dry, findings=tuple(sorted(dry.findings, key=lambda f: _rank(f, likeness))), likeness=likeness)


def _rank(finding: Finding, likeness: Likeness) -> tuple[bool, bool, float, float]:
    theirs = likeness.counterparts.get(finding.id)
    return (
        finding.severity is Severity.INFO,
        theirs is None,
        -(theirs.recoverable_us or 0.0) if theirs else 0.0,
        -(theirs.wait_us or 0.0) if theirs else 0.0,
    )


def _pairs(dry: Analysis, recording: Analysis) -> Iterator[_Pair]:
    """Findings of the same place; where there are several, those of the same rule together."""
    ours, theirs = sites_of(dry), sites_of(recording)
    for mine, other in matched(ours, theirs):
        here = [f for key in mine for f in ours[key].findings]
        there = [f for key in other for f in theirs[key].findings]
        yield from _by_rule(here, there)


def _by_rule(here: Sequence[Finding], there: Sequence[Finding]) -> Iterator[_Pair]:
    common = {f.rule for f in here} & {f.rule for f in there}
    for rule in sorted(common):
        yield _of_rules(here, (rule,)), _of_rules(there, (rule,))
    rest = [f for f in here if f.rule not in common], [f for f in there if f.rule not in common]
    if any(rest):
        yield rest


def _of_rules(findings: Iterable[Finding], rules: Sequence[str]) -> list[Finding]:
    return [f for f in findings if f.rule in rules]


def _counterpart(finding: Finding, pair: _Pair, dry: Trace, recording: Analysis) -> Counterpart:
    here, there = pair
    gains = [f.gain for f in there if f.gain]
    timed = not recording.step.waits_withheld
    sizes = _copied([finding], dry), _copied(there, recording.trace)
    return Counterpart(
        findings=tuple(sorted(there, key=lambda f: -f.wait_us)),
        shared=tuple(f.id for f in here if f.id != finding.id),
        per_step=sum(f.per_step for f in there),
        wait_us=sum(f.wait_us for f in there) if timed else None,
        bubble_us=sum(f.bubble_us for f in there) if timed else None,
        recoverable_us=sum(g.recoverable_us for g in gains) if gains else None,
        range_us=(sum(g.range_us[0] for g in gains), sum(g.range_us[1] for g in gains)) if gains else None,
        copied=sizes if max(sizes) > A_NUMBER and min(sizes) else None,
    )


def _copied(findings: Iterable[Finding], trace: Trace) -> float:
    """Bytes of a copy of these findings, in the mean; 0 where none is known."""
    calls = [call for f in findings for o in f.occurrences for call in o.sync.calls]
    rows = trace.copies_of(np.array(calls, np.int64))
    sizes = [size for size in trace.slices.bytes[rows[rows != NONE]].tolist() if size > 0]
    return sum(sizes) / len(sizes) if sizes else 0.0
