"""Name findings that read one value several times per step, and advise to read it once.

A dry run knows the values that are read. A trace doesn't: there it is the same line that reads so many times in each
step, and what it reads may be the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from syncscan.model.finding import Cause, Finding, Occurrence
from syncscan.model.trace import Trace

LEAST_KNOWN = 2
"""Reads of what is known to be the same value that are worth a word."""
MOST = 0.75
"""So large a part of the reads of a step has the value: two of many counts are equal by chance."""
LEAST = 4
"""Reads at one line in each step, where their values aren't known: fewer may be of different things, as some losses."""
_READS = frozenset({"item", "number-argument", "tolist"})
"""Rules of reads that a trace shows and that nothing tells to be of different values."""
_ONCE = "Read it once, before the loop or the layers, and pass the number on (as max_seqlen is)."
_IF = "If it is the same value each time, as a length that every layer asks for, read it once before and pass it on."


def name_repeated_reads(trace: Trace, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings; those that read one value several times per step get a title and a fix that say so."""
    base = trace.info.base_ns
    known = {mark.epoch_ns - base: mark.value for mark in trace.info.capture.values}
    return tuple(_named(trace, finding, known) for finding in findings)


def _named(trace: Trace, finding: Finding, known: dict[int, str]) -> Finding:
    diagnosis = finding.diagnosis
    if diagnosis.intended or diagnosis.cause not in (Cause.READBACK, Cause.SHAPE, Cause.CTRL):
        return finding
    steps = _by_step(finding.occurrences)
    if trace.info.capture.pretended:
        reads = min((_same(step, known) for step in steps), default=0)
        if reads < LEAST_KNOWN:
            return finding
        title = f"{reads} reads of what is the same value: read once"
        return replace(finding, diagnosis=replace(diagnosis, title=title, once=True, fix=f"{_ONCE} {diagnosis.fix}"))
    counts = {len(step) for step in steps}
    if not trace.steps or len(counts) > 1 or min(counts) < LEAST or not _may_be_one_value(finding):
        return finding
    title = f"{diagnosis.title}, {min(counts)} times at one line: once, if it is the same value"
    return replace(finding, diagnosis=replace(diagnosis, title=title, once=True, fix=f"{_IF} {diagnosis.fix}"))


def _may_be_one_value(finding: Finding) -> bool:
    """Whether it reads numbers or lists at a line that is known, and not one element after the other or choices."""
    line = finding.where.source or finding.where.framework
    plain = finding.diagnosis.title.endswith(("waits for a number", "waits for a copy to the host", "as an argument"))
    return line is not None and finding.rule in _READS and (plain or finding.rule == "tolist")


def _by_step(occurrences: Iterable[Occurrence]) -> list[list[Occurrence]]:
    steps: defaultdict[int | None, list[Occurrence]] = defaultdict(list)
    for occurrence in occurrences:
        steps[occurrence.where.step].append(occurrence)
    return list(steps.values())


def _same(step: Sequence[Occurrence], known: dict[int, str]) -> int:
    """How many of these read one and the same value; 0 where not most of them do, which may be chance."""
    each = [known.get(o.sync.ts, "") for o in step]
    most = max(Counter(filter(None, each)).values(), default=0)
    return most if most >= MOST * len(each) else 0
