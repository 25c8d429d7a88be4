"""Merge sync points of the same rule, scope, op and sources to one finding; name those that read one value again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from syncscan.cost.step import times_held
from syncscan.model.finding import Cause, Confidence, Finding, Phase, Replacement, Severity, SyncPoint, short_id
from syncscan.model.libraries import path_in_package
from syncscan.model.step import StepSummary
from syncscan.model.trace import Trace

_ORDER = (Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)


def merged_findings(occurrences: Iterable[SyncPoint], step: StepSummary) -> tuple[Finding, ...]:
    """Merge sync points across steps to findings, ordered by bubble and wait, worst first and `info` last."""
    groups: defaultdict[tuple[Any, ...], list[SyncPoint]] = defaultdict(list)
    for occurrence in occurrences:
        groups[_key(occurrence)].append(occurrence)
    held = times_held([*groups.values()])
    findings = [_finding(key, group, ns, step) for (key, group), ns in zip(groups.items(), held, strict=True)]
    return tuple(sorted(findings, key=lambda f: (f.severity is Severity.INFO, -f.idle_us, -f.waited_us, f.id)))


def without_preparation(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Leave out findings outside of the steps at places that also wait within them: the first step's preparation."""
    listed = tuple(findings)
    within = {_key(f.occurrences[0])[:-1] for f in listed if not f.intended}
    return tuple(f for f in listed if not f.intended or _key(f.occurrences[0])[:-1] not in within)


def _key(o: SyncPoint) -> tuple[Any, ...]:
    d, w = o.diagnosis, o.where
    place = (w.path or w.source.file, w.source.line, w.source.function) if w.source else ()
    if d.per_statement and place:
        return d.rule, w.scope, "", place, _merge_phase(w.phase), d.intended
    if inner := w.in_library:  # one line of the program, `train()`, covers many lines of a library
        place = (*place, path_in_package(inner.file), inner.line, inner.function)
    return d.rule, w.scope, w.op, place, _merge_phase(w.phase), d.intended


def _merge_phase(phase: Phase) -> Phase:
    """Return the phase to merge by: OTHER counts as FORWARD, as the next batch's forward pass can follow backward."""
    return Phase.FORWARD if phase is Phase.OTHER else phase


def _finding(key: tuple[Any, ...], group: Sequence[SyncPoint], held_ns: int, step: StepSummary) -> Finding:
    steps, waits = max(step.count, 1), [o.wait_ns for o in group]
    wait = held_ns / steps / 1e3
    if step.observed_us and not group[0].diagnosis.intended:
        wait = min(wait, step.observed_us)  # the rest was for launches from before the steps, which is no step's time
    bubble = sum([o.bubble_ns for o in group]) / steps / 1e3
    worst = group[waits.index(max(waits))]
    d, w = worst.diagnosis, worst.where
    by_statement = d.per_statement and w.source is not None  # then the line of a library that waits in it says nothing
    return Finding(
        id=f"{key[0]}-{short_id(key)}",  # stable across runs of the same code
        rule=d.rule,
        name=d.name,
        cause=d.cause,
        severity=_severity(worst, wait, bubble, step),
        confidence=min(d.confidence, w.confidence, key=_ORDER.index),
        op=w.op,
        op_stack=w.op_stack,
        call=worst.api,
        scope=w.scope,
        module=w.module,
        source=w.source,
        called_from=None if by_statement else w.called_from,
        in_loop=w.in_loop,
        owner="user" if by_statement else w.owner,
        phase=w.phase,
        thread=w.thread,
        count=len(group),
        per_step=len(group) / steps,
        wait_us=None if step.waits_withheld else wait,
        bubble_us=None if step.waits_withheld else bubble,
        moved_us=None,
        recoverable_us=None,
        recoverable_range_us=None,
        once_compiled_us=None,
        untold="",
        value=w.value,
        title=d.title,
        why=d.why,
        fix=d.fix,
        when_fine=d.when_fine,
        occurrences=tuple(group),
        do=d.do,
        removal=d.removal,
        replacement=d.replacement,
        path=w.path,
    )


def _severity(worst: SyncPoint, wait: float, bubble: float, step: StepSummary) -> Severity:
    """Return the severity by wait and bubble, which is replaced once the gain is projected."""
    if worst.diagnosis.intended:
        return Severity.INFO
    if not step.observed_us:  # nothing was timed, so the cost is unknown, which is neither high nor low
        return Severity.MEDIUM
    cost = min(bubble, step.observed_us) + 0.1 * wait
    return Severity.of_share(cost / step.observed_us if step.observed_us else 0.0)


LEAST_KNOWN = 2
"""Fewest reads of a known equal value per step that are worth reporting."""
MOST = 0.75
"""Share of a step's reads that must have the value, since two of many counts are equal by chance."""
LEAST = 4
"""Fewest reads at one line per step where values are unknown; fewer may read different things, such as two losses."""
_READS = frozenset({"item", "number-argument", "tolist"})
"""Rules whose reads may be of the same value, as far as a trace shows."""
_ONCE = "Read it once, before the loop or the layers, and pass the number on (as max_seqlen is)."
_DO = "Read it once, before the loop, if the value is the same each time."
_IF = "If it is the same value each time (such as a length that every layer needs), read it once before and pass it on."


def name_repeated_reads(trace: Trace, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings; those that read one value several times per step get a title and a fix that say so."""
    base = trace.info.base_ns
    known = {epoch_ns - base: value for epoch_ns, value in trace.info.capture.values}
    return tuple(_with_name(trace, finding, known) for finding in findings)


def _with_name(trace: Trace, finding: Finding, names: dict[int, str]) -> Finding:
    if finding.intended or finding.cause not in (Cause.READBACK, Cause.SHAPE, Cause.CTRL):
        return finding
    steps = _by_step(finding.occurrences)
    if trace.info.capture.pretended:
        reads = min((_same(step, names) for step in steps), default=0)
        if reads < LEAST_KNOWN:
            return finding
        title = f"{reads} reads of the same value: read it once"
        return replace(finding, title=title, fix=f"{_ONCE} {finding.fix}")
    counts = {len(step) for step in steps}
    if not trace.steps or len(counts) > 1 or min(counts) < LEAST or not _may_be_one_value(finding):
        return finding
    title = f"{finding.title}, {min(counts)} times at one line: read it once if the value is the same"
    return replace(finding, title=title, fix=f"{_IF} {finding.fix}", do=_DO, replacement=Replacement.NOTHING)


def _may_be_one_value(finding: Finding) -> bool:
    """Return whether a finding reads numbers or lists at a known line, and neither elements one by one nor choices."""
    line = finding.source or finding.called_from
    plain = finding.title.endswith(("waits for a number", "waits for a copy to the host", "as an argument"))
    return line is not None and finding.rule in _READS and (plain or finding.rule == "tolist")


def _by_step(occurrences: Iterable[SyncPoint]) -> list[list[SyncPoint]]:
    steps: defaultdict[int | None, list[SyncPoint]] = defaultdict(list)
    for occurrence in occurrences:
        steps[occurrence.where.step].append(occurrence)
    return list(steps.values())


def _same(step: Sequence[SyncPoint], known: dict[int, str]) -> int:
    """Return how many reads of a step have the most frequent value; 0 if they are a minority, which may be chance."""
    values = [known.get(o.ts, "") for o in step]
    most = max(Counter(filter(None, values)).values(), default=0)
    return most if most >= MOST * len(values) else 0
