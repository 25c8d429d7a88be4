"""Name findings that read one value several times per step, and advise to read it once.

A dry run knows the values that are read. A trace only shows that the same line reads several times in each step, and
that the values may be equal.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from syncscan.model.finding import Cause, Finding, Occurrence
from syncscan.model.trace import Trace

LEAST_KNOWN = 2
"""Fewest reads of a known equal value per step that are worth reporting."""
MOST = 0.75
"""Share of a step's reads that must have the value, since two of many counts are equal by chance."""
LEAST = 4
"""Fewest reads at one line per step where values are unknown; fewer may read different things, such as two losses."""
_READS = frozenset({"item", "number-argument", "tolist"})
"""Rules whose reads may be of the same value, as far as a trace shows."""
_ONCE = "Read it once, before the loop or the layers, and pass the number on (as max_seqlen is)."
_IF = "If it is the same value each time (such as a length that every layer needs), read it once before and pass it on."


def name_repeated_reads(trace: Trace, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings; those that read one value several times per step get a title and a fix that say so."""
    base = trace.info.base_ns
    known = {mark.epoch_ns - base: mark.value for mark in trace.info.capture.values}
    return tuple(_with_name(trace, finding, known) for finding in findings)


def _with_name(trace: Trace, finding: Finding, names: dict[int, str]) -> Finding:
    diagnosis = finding.diagnosis
    if diagnosis.intended or diagnosis.cause not in (Cause.READBACK, Cause.SHAPE, Cause.CTRL):
        return finding
    steps = _by_step(finding.occurrences)
    if trace.info.capture.pretended:
        reads = min((_same(step, names) for step in steps), default=0)
        if reads < LEAST_KNOWN:
            return finding
        title = f"{reads} reads of the same value: read it once"
        return replace(finding, diagnosis=replace(diagnosis, title=title, once=True, fix=f"{_ONCE} {diagnosis.fix}"))
    counts = {len(step) for step in steps}
    if not trace.steps or len(counts) > 1 or min(counts) < LEAST or not _may_be_one_value(finding):
        return finding
    title = f"{diagnosis.title}, {min(counts)} times at one line: read it once if the value is the same"
    return replace(finding, diagnosis=replace(diagnosis, title=title, once=True, fix=f"{_IF} {diagnosis.fix}"))


def _may_be_one_value(finding: Finding) -> bool:
    """Return whether a finding reads numbers or lists at a known line, and neither elements one by one nor choices."""
    line = finding.where.source or finding.where.framework
    plain = finding.diagnosis.title.endswith(("waits for a number", "waits for a copy to the host", "as an argument"))
    return line is not None and finding.rule in _READS and (plain or finding.rule == "tolist")


def _by_step(occurrences: Iterable[Occurrence]) -> list[list[Occurrence]]:
    steps: defaultdict[int | None, list[Occurrence]] = defaultdict(list)
    for occurrence in occurrences:
        steps[occurrence.where.step].append(occurrence)
    return list(steps.values())


def _same(step: Sequence[Occurrence], known: dict[int, str]) -> int:
    """Return how many reads of a step have the most frequent value; 0 if they are a minority, which may be chance."""
    values = [known.get(o.sync.ts, "") for o in step]
    most = max(Counter(filter(None, values)).values(), default=0)
    return most if most >= MOST * len(values) else 0
