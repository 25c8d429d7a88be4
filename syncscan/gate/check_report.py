"""Describe verdicts: exceeded limits, the lines responsible, and what to do; for CI servers, a line each; as JSON."""

from __future__ import annotations

import glob
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from syncscan.gate.verdict import CheckVerdict, Exempt, Violation
from syncscan.model.finding import Finding, Severity
from syncscan.model.json_text import Document, about, indented, written
from syncscan.model.race import Race
from syncscan.report.blocks import Block, Heading, Item, Items, Sentence, Span, code, notes, strong
from syncscan.report.flagged import Flagged, FlaggedLine, flagged_finding, flagged_race, place_of, place_of_race
from syncscan.report.phrases import (
    certainty,
    chain,
    gains,
    line,
    places,
    replayed,
    sentences,
    waiting_time,
    what,
    worth_more_compiled,
)
from syncscan.report.units import duration, times
from syncscan.version import __version__

SHOWN = 10
"""Findings that are listed for each limit; JSON has them all."""


def blocks(verdicts: Sequence[CheckVerdict], rules_from: str) -> Iterator[Block]:
    for verdict in verdicts:
        state = Span("passed", "good") if verdict.passed else Span("failed", "bad")
        name = PurePath(verdict.path).name or verdict.path
        yield Heading((state, f": {name}, {summary(verdict, rules_from)}"), 1)
        yield from _violations(verdict)
        for exempt in verdict.exempt[:SHOWN]:
            sync = _line(exempt.of)
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
    listed: list[tuple[str, ...]] = []
    for violation in verdict.violations:
        new = () if violation.findings in listed else verdict.named(violation.findings)
        listed.append(violation.findings)
        below = (
            *_shown(map(_line, new)),
            *_shown(race.lines for race in verdict.races if race.id in violation.races),
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


def _line(finding: Finding) -> str:
    where = places(finding) or " › ".join(finding.scope)
    sync = f"{what(finding)}, {times(finding.per_step)}, {waiting_time(finding)}"
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


MOST_DETAILS = 50
"""Findings that a test names per violation."""
TOOL = "syncscan check"
_TEST = FlaggedLine(rule="limit", severity=Severity.HIGH, title=TOOL, message="", group="syncscan.check")


def flagged_limits(verdict: CheckVerdict, rules_from: str, within_as: Severity | None = None) -> Flagged:
    """Return what breaks the limits; with `within_as` also what waits and keeps them, as severe as that."""
    guilty = {f.id for f in verdict.guilty}
    notices = (*(v.sentence for v in verdict.violations), *verdict.all_notes)
    within = [f for f in verdict.counted if f.id not in guilty] if within_as else []
    return Flagged(
        tool=TOOL,
        path=verdict.path,
        lines=(
            *(flagged_race(race, verdict.path) for race in verdict.guilty_races),
            *(_sync(f, verdict, Severity.HIGH) for f in verdict.guilty),
            *(_sync(f, verdict, within_as or Severity.LOW) for f in within),
        ),
        limits=tuple(_limit(v, verdict, rules_from) for v in verdict.violations),
        passed=replace(_TEST, name=f"limits of {rules_from}"),
        warnings=verdict.all_notes,
        closing=(f"All limits from {rules_from} are met.",) if verdict.passed else (),
        output=" ".join(verdict.all_notes),
        notifications=tuple(("warning", text) for text in notices),
    )


def _limit(violation: Violation, verdict: CheckVerdict, rules_from: str) -> FlaggedLine:
    findings = verdict.named(violation.findings)
    races = [race for race in verdict.races if race.id in violation.races]
    return replace(
        _TEST,
        name=str(violation.limit),
        message=sentences(violation.sentence, f"The limits come from {rules_from}"),
        place=place_of_race(races[0]) if races else place_of(findings[0].source) if findings else None,
        cost=violation.sentence,
        details=(
            *map(_detail, findings[:MOST_DETAILS]),
            *(f"{race.lines}: {race.title}; {race.fix}" for race in races[:MOST_DETAILS]),
        ),
    )


def _detail(f: Finding) -> str:
    where = places(f) or "unknown line"
    sync = f"{what(f)} {waiting_time(f)}, {times(f.per_step)}"
    return f"{where}: {sync}; {' > '.join(chain(f))}; {f.fix}"


def _sync(f: Finding, verdict: CheckVerdict, severity: Severity) -> FlaggedLine:
    """Return a sync as the answer to whether its line may stay: how long it waits, and what removing it gains."""
    doubt = "" if f.source is None or f.source.exact else f"The line is uncertain: {certainty(f.source)}"
    gain = gains(f, replayed(verdict.step))
    sync = f"{what(f)} {waiting_time(f)}, {times(f.per_step)}{gain and f'; {gain}'}"
    message = sentences(sync, f"Chain: {' > '.join(chain(f))}", f.fix, doubt)
    title = f"{f.title}; {gain}" if gain else f.title
    return replace(flagged_finding(f, verdict.step, verdict.path), severity=severity, title=title, message=message)


SCHEMA = "syncscan.check/2"


class VerdictDocument(Struct, frozen=True):
    """Whether one recording is within the limits."""

    path: str
    passed: bool
    violations: tuple[Violation, ...]
    counted: Annotated[tuple[Finding, ...], about("findings that limits count")]
    exempt: Annotated[tuple[Exempt[Finding], ...], about("findings that no limit counts, and why")]
    notes: tuple[str, ...]
    races: Annotated[tuple[Race, ...], about("races that count toward the limit, for a dry run")]
    exempt_races: Annotated[tuple[Exempt[Race], ...], about("races that no limit counts, and why")]


class CheckDocument(Document, frozen=True):
    """Whether recordings are within a project's limits."""

    passed: bool
    rules_from: str
    traces: tuple[VerdictDocument, ...]


def render(verdicts: Sequence[CheckVerdict], rules_from: str) -> str:
    """Return the verdicts as indented JSON; times in µs per step."""
    document = CheckDocument(
        schema=SCHEMA,
        syncscan=__version__,
        passed=all(v.passed for v in verdicts),
        rules_from=rules_from,
        traces=tuple(map(_verdict, verdicts)),
    )
    return indented(document) + "\n"


def _verdict(verdict: CheckVerdict) -> VerdictDocument:
    return written(
        VerdictDocument,
        verdict,
        counted=tuple(f.without_evidence for f in verdict.counted),
        exempt=tuple(replace(e, of=e.of.without_evidence) for e in verdict.exempt),
        notes=verdict.all_notes,
    )
