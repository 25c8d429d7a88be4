"""Describe verdicts: exceeded limits, the lines responsible, and what to do."""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from msgspec.structs import replace

from syncscan.gate.verdict import CheckVerdict
from syncscan.model.finding import Finding
from syncscan.model.race import Race
from syncscan.report.blocks import Block, Heading, Item, Items, Sentence, Span, code, notes, strong
from syncscan.report.phrases import chain, line, places, waiting_time, what, worth_more_compiled
from syncscan.report.units import duration, times

SHOWN = 10
"""Findings that are listed for each limit; JSON has them all."""


def blocks(verdicts: Sequence[CheckVerdict], rules_from: str) -> Iterator[Block]:
    for verdict in verdicts:
        state = Span("passed", "good") if verdict.passed else Span("failed", "bad")
        name = PurePath(verdict.path).name or verdict.path
        yield Heading((state, f": {name}, {summary(verdict, rules_from)}"), 1)
        yield from _violations(verdict)
        for exempt in verdict.exempt[:SHOWN]:
            sync = _line(exempt.of, verdict.waits_withheld)
            yield Sentence(f"allowed: {sync} ({exempt.by.value}: {exempt.reason})", "dim")
        for known in verdict.exempt_races[:SHOWN]:
            yield Sentence(f"allowed: {known.of.lines} ({known.by.value}: {known.reason})", "dim")
        yield from notes(verdict.all_notes)


def summary(verdict: CheckVerdict, rules_from: str) -> str:
    kinds = Counter([e.by.value for e in verdict.exempt] + [e.by.value for e in verdict.exempt_races])
    exempt = ", ".join(f"{count} by {kind}" for kind, count in kinds.items())
    beside = f"; exempt {exempt}" if exempt else ""
    races = f" and {len(verdict.races)} race{'s' * (len(verdict.races) != 1)}" if verdict.races else ""
    syncs = f"{len(verdict.counted)} sync{'s' * (len(verdict.counted) != 1)}"
    return f"{syncs}{races} checked against {rules_from}{beside}"


def _violations(verdict: CheckVerdict) -> Iterator[Items]:
    """Yield each limit with its lines, but those that an earlier one lists, and then what to do about each line."""
    listed: list[tuple[Finding, ...]] = []
    for violation in verdict.violations:
        new = () if violation.findings in listed else violation.findings
        listed.append(violation.findings)
        below = (
            *_shown([_line(f, verdict.waits_withheld) for f in new]),
            *_shown([race.lines for race in violation.races]),
        )
        yield Items((Item(violation.sentence, below, Span("✗", "bad")),))
    todo = (*map(_finding, verdict.guilty[:SHOWN]), *map(_race, verdict.guilty_races[:SHOWN]))
    if todo:
        yield Items(tuple(replace(item, mark=Span(f"{number}.")) for number, item in enumerate(todo, 1)))


def _shown(texts: Iterable[str]) -> Iterator[str]:
    every = list(texts)
    yield from every[:SHOWN]
    if len(every) > SHOWN:
        yield f"… and {len(every) - SHOWN} more"


def _line(finding: Finding, withheld: bool) -> str:
    where = places(finding) or " › ".join(finding.scope)
    sync = f"{what(finding)}, {times(finding.per_step)}, {waiting_time(finding, withheld)}"
    return f"{where or 'unknown line'}: {sync}{_once_compiled(finding)}"


def _once_compiled(finding: Finding) -> str:
    now, later = finding.recoverable_us, finding.once_compiled_us
    if now is None or not worth_more_compiled(later, now):
        return ""
    return f", saves {duration(later)} once the network is compiled"


def _finding(finding: Finding) -> Item:
    first, *entry = _allowed(finding)
    below = (f"chain: {' > '.join(chain(finding))}", f"instead: {finding.fix}", f"or allow it: {first}")
    return Item(strong(finding.title), (*below, *map(code, entry)))


def _race(race: Race) -> Item:
    allowed = f"or allow it: # syncscan: allow[{race.kind.value}] why it may stay, in {race.second}"
    return Item(strong(f"{race.lines}: {race.title}"), (f"instead: {race.fix}", allowed))


def _allowed(finding: Finding) -> Sequence[str]:
    """Return how to allow a finding: a comment on its line where one line is known, else an allow-list entry."""
    source, scope = finding.source, finding.scope
    if source and (source.exact or len(source.candidates) == 1):
        at = line(source) if source.exact else source.candidates[0]
        return (f"# syncscan: allow[{finding.rule}] REASON, in {source.file}:{at}",)
    key, name = ("scope", scope[-1]) if scope else ("op", finding.op)
    entry = {"rule": finding.rule, key: glob.escape(name)}
    if source:
        entry["line"] = glob.escape(source.file)
    entry["reason"] = "why it may stay"
    pairs = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items())
    return ("in pyproject.toml:", "[[tool.syncscan.allow]]", *pairs)
