"""Sort a dry run's findings by their cost in a recording, matched as in a diff."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.gate.sites import matched, sites_of
from syncscan.model.analysis import Analysis
from syncscan.model.finding import CopiedBytes, Counterpart, Finding
from syncscan.model.likeness import Likeness
from syncscan.model.trace import NONE, Trace

A_NUMBER = 8
"""Bytes of the largest single number: a smaller copy says nothing about the sizes of a program's tensors."""
_Pair = tuple[list[Finding], list[Finding]]


def liken(dry: Analysis, recording: Analysis) -> Analysis:
    """Sort a dry run's findings by their cost in a recording of the same code, of the same or another size.

    Args:
        dry: the trace of a dry run (`pretend_gpu`).
        recording: of `analyze`. Its figures are taken as they are: nothing is scaled from one size to another.

    Returns:
        The dry run's analysis with its `likeness`, costliest first; findings not in the recording come last.

    Raises:
        UsageError: the first is no dry run, or the second is one.
    """
    if not dry.trace.info.capture.pretended or recording.trace.info.capture.pretended:
        raise UsageError("Expected a dry run and a recording.", "Give a trace recorded on a GPU.")
    pairs = list(_pairs(dry, recording))
    counterparts = {f.id: _counterpart(f, pair, dry.trace, recording) for pair in pairs for f in pair[0] if pair[1]}
    seen = {f.id for dry_findings, recorded in pairs if dry_findings for f in recorded}
    info, step = recording.trace.info, recording.step
    likeness = Likeness(
        path=info.path,
        device=info.devices[0] if info.devices else "",
        steps=step.count,
        step_us=step.unprofiled_us or step.observed_us,
        recoverable_us=step.recoverable_us,
        range_us=step.recoverable_range_us,
        counterparts=counterparts,
        unseen=tuple(f for f in recording.findings if f.id not in seen and not f.intended),
    )
    findings = (replace(f, like=counterparts.get(f.id)) for f in dry.findings)
    return replace(dry, findings=tuple(sorted(findings, key=lambda f: _rank(f, likeness))), likeness=likeness)


def _rank(finding: Finding, likeness: Likeness) -> tuple[bool, bool, float, float]:
    theirs = likeness.counterparts.get(finding.id)
    return (
        finding.intended,
        theirs is None,
        -(theirs.recoverable_us or 0.0) if theirs else 0.0,
        -(theirs.wait_us or 0.0) if theirs else 0.0,
    )


def _pairs(dry: Analysis, recording: Analysis) -> Iterator[_Pair]:
    """Yield the findings at the same place; where there are several, grouped by rule."""
    ours, theirs = sites_of(dry), sites_of(recording)
    for own, other in matched(ours, theirs):
        dry_findings = [f for key in own for f in ours[key].findings]
        recorded = [f for key in other for f in theirs[key].findings]
        yield from _by_rule(dry_findings, recorded)


def _by_rule(dry_findings: Sequence[Finding], recorded: Sequence[Finding]) -> Iterator[_Pair]:
    common = {f.rule for f in dry_findings} & {f.rule for f in recorded}
    for rule in sorted(common):
        yield _of_rules(dry_findings, (rule,)), _of_rules(recorded, (rule,))
    rest = [f for f in dry_findings if f.rule not in common], [f for f in recorded if f.rule not in common]
    if any(rest):
        yield rest


def _of_rules(findings: Iterable[Finding], rules: Sequence[str]) -> list[Finding]:
    return [f for f in findings if f.rule in rules]


def _counterpart(finding: Finding, pair: _Pair, dry: Trace, recording: Analysis) -> Counterpart:
    dry_findings, recorded = pair
    gains = [f.recoverable_us for f in recorded if f.recoverable_us is not None]
    ranges = [f.recoverable_range_us for f in recorded if f.recoverable_range_us]
    timed = not recording.step.waits_withheld
    sizes = _copied_bytes([finding], dry), _copied_bytes(recorded, recording.trace)
    return Counterpart(
        findings=tuple(f.id for f in sorted(recorded, key=lambda f: -f.waited_us)),
        shared_with=tuple(f.id for f in dry_findings if f.id != finding.id),
        per_step=sum(f.per_step for f in recorded),
        wait_us=sum(f.waited_us for f in recorded) if timed else None,
        bubble_us=sum(f.idle_us for f in recorded) if timed else None,
        recoverable_us=sum(gains) if gains else None,
        recoverable_range_us=(sum(r[0] for r in ranges), sum(r[1] for r in ranges)) if ranges else None,
        copied_bytes=CopiedBytes(*sizes) if max(sizes) > A_NUMBER and min(sizes) else None,
    )


def _copied_bytes(findings: Iterable[Finding], trace: Trace) -> float:
    """Return the mean bytes of a copy of these findings; 0 where unknown."""
    calls = [call for f in findings for o in f.occurrences for call in o.calls]
    rows = trace.copies_of(np.array(calls, np.int64))
    sizes = [size for size in trace.slices.bytes[rows[rows != NONE]].tolist() if size > 0]
    return sum(sizes) / len(sizes) if sizes else 0.0
