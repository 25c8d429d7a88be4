"""Flag exceeded limits for CI servers, and each line responsible for one."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.gate.verdict import CheckVerdict, Violation
from syncscan.model.finding import Finding, Severity
from syncscan.report.flagged import FilePosition, Flagged, FlaggedLine, flagged_race, place_of
from syncscan.report.phrases import certainty, chain, gains, places, sentences, waiting_time, what
from syncscan.report.units import times

SHOWN = 50
"""Findings that a test names per violation."""
TOOL = "syncscan check"
_TEST = FlaggedLine(rule="limit", severity=Severity.HIGH, title=TOOL, message="", group="syncscan.check")


def flagged_limits(verdict: CheckVerdict, rules_from: str, with_kept: bool = False) -> Flagged:
    """Return what breaks the limits; with `with_kept` also what waits and keeps them, for those who review it."""
    guilty = {f.id for f in verdict.guilty}
    kept = [f for f in verdict.counted if f.id not in guilty] if with_kept else []
    return Flagged(
        tool=TOOL,
        path=verdict.path,
        lines=(
            *(flagged_race(race, verdict.path) for race in verdict.guilty_races),
            *(_sync(f, verdict, Severity.HIGH) for f in verdict.guilty),
            *(_sync(f, verdict, Severity.LOW) for f in kept),
        ),
        limits=tuple(_limit(v, rules_from, verdict.waits_withheld) for v in verdict.violations),
        passed=replace(_TEST, name=f"limits of {rules_from}"),
        warnings=verdict.all_notes,
        closing=(f"All limits from {rules_from} are met.",) if verdict.passed else (),
        output=" ".join(verdict.all_notes),
    )


def _limit(violation: Violation, rules_from: str, withheld: bool) -> FlaggedLine:
    return replace(
        _TEST,
        name=str(violation.limit),
        message=sentences(violation.sentence, f"The limits come from {rules_from}"),
        place=_place(violation),
        cost=violation.sentence,
        details=(
            *(_detail(f, withheld) for f in violation.findings[:SHOWN]),
            *(f"{race.lines}: {race.title}; {race.fix}" for race in violation.races[:SHOWN]),
        ),
    )


def _place(violation: Violation) -> FilePosition | None:
    if violation.races:
        second = violation.races[0].second
        return FilePosition(second.file, second.line) if second.file else None
    return place_of(violation.findings[0].source) if violation.findings else None


def _detail(f: Finding, withheld: bool) -> str:
    where = places(f) or "unknown line"
    sync = f"{what(f)} {waiting_time(f, withheld)}, {times(f.per_step)}"
    return f"{where}: {sync}; {' > '.join(chain(f))}; {f.fix}"


def _sync(f: Finding, verdict: CheckVerdict, severity: Severity) -> FlaggedLine:
    """Return a sync as the answer to whether its line may stay: how long it waits, and what removing it gains."""
    source = f.source
    doubt = "" if source is None or source.exact else f"The line is uncertain: {certainty(source)}"
    gain = gains(f, verdict.step_us)
    sync = f"{what(f)} {waiting_time(f, verdict.waits_withheld)}, {times(f.per_step)}{gain and f'; {gain}'}"
    message = sentences(sync, f"Chain: {' > '.join(chain(f))}", f.fix, doubt)
    title = f"{f.title}; {gain}" if gain else f.title
    return FlaggedLine(rule=f.rule, severity=severity, title=title, message=message, place=place_of(source))
