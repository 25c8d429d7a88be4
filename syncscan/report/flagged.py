"""Flagged lines, from which SARIF, GitHub, JUnit and CSV reports are rendered, and those of an analysis.

Texts are as in the trace or source: each renderer escapes them, and leaves out what its format can't express.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity, Source
from syncscan.model.fix import SourceEdit
from syncscan.model.race import Race
from syncscan.model.step import StepSummary
from syncscan.report import source
from syncscan.report.frames import FINDING_COLUMNS, finding_rows, race_row
from syncscan.report.front import Front, front_of
from syncscan.report.phrases import (
    USES,
    certainty,
    chain,
    in_library,
    line,
    measured,
    places,
    projected,
    sentences,
    what,
)
from syncscan.report.story import lacking, steps_found
from syncscan.version import __version__


class FilePosition(msgspec.Struct, frozen=True):
    """A position in a file, counted from 1; 0 where unknown."""

    file: str
    line: int
    column: int = 0
    end_line: int = 0


class FlaggedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sync, lint warning or exceeded limit as a CI server shows it, at its line if it has one."""

    rule: str
    severity: Severity
    title: str
    message: str
    """Cost, reason and advice, for readers who see the title."""
    place: FilePosition | None = None
    rule_name: str = ""
    """The rule's subject; empty where that is the title."""
    rule_help: str = ""
    """Advice, if the rule has any."""
    tags: tuple[str, ...] = ("performance",)
    summary: str = ""
    """The message, for readers who don't see the title."""
    inside: tuple[str, str] | None = None
    """Name and kind of what surrounds it: a `function`, or `member` of something."""
    called_from: FilePosition | None = None
    """The library's line inside it that waits."""
    fingerprints: Mapping[str, str] = {}
    """Ids that stay the same in the next run, by scheme."""
    figures: Mapping[str, Any] = {}
    """Numbers for programs; times in µs per step."""
    name: str = ""
    """Name as a test."""
    group: str = ""
    """Class name as a test."""
    took_us: float | None = None
    cost: str = ""
    """First line of a failed test's message."""
    details: tuple[str, ...] = ()
    """Further lines of that message."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """Its rows in a table, each with cells by column; columns without a cell stay empty."""
    changes: tuple[tuple[str, tuple[SourceEdit, ...]], ...] = ()
    """Changes that would remove it: what each does, and its edits of the file."""


class Flagged(msgspec.Struct, frozen=True, kw_only=True):
    """The flagged lines of one recording, job or source tree, and the sentences beside them."""

    tool: str = "syncscan"
    """The command that reports them."""
    path: str = ""
    lines: tuple[FlaggedLine, ...] = ()
    """Flagged lines, most important first."""
    columns: tuple[str, ...] = ()
    """Columns of the lines' rows, in order; empty where there is no table of them."""
    rows: tuple[Mapping[str, Any], ...] = ()
    """Rows of that table that belong to no flagged line; they come last."""
    limits: tuple[FlaggedLine, ...] = ()
    """Exceeded limits, one test each where limits are what is tested."""
    passed: FlaggedLine | None = None
    """The test that passes where nothing is flagged."""
    warnings: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()
    """Summary sentences; empty for no summary."""
    output: str = ""
    """Text that a test run would have printed."""
    took_us: float | None = None
    """How long syncs block the host, µs per step."""
    properties: Mapping[str, str] = {}
    notifications: tuple[tuple[str, str], ...] = ()
    """Messages about the run: level and sentence."""
    failed: bool = False
    facts: Mapping[str, Any] = {}
    """Facts for programs about the whole."""


NOTHING = FlaggedLine(
    rule="", severity=Severity.INFO, title="", message="", group="syncscan", name="no host-device syncs"
)
"""The test that passes where no sync was found."""


def flagged_findings(analysis: Analysis) -> Flagged:
    """Return the findings that an analysis shows, in order, with its verdict and advice."""
    s, path = analysis.step, analysis.trace.info.path
    findings = analysis.shown.findings
    front = front_of(analysis)
    doubt = "" if front.sure == "yes" else front.why_sure
    conclusion = (front.verdict, front.together, *front.advice, front.races, doubt, front.hidden)
    return Flagged(
        path=path,
        lines=(
            *(flagged_race(race, path) for race in analysis.races),
            *(flagged_finding(f, s, path) for f in findings),
        ),
        columns=tuple(FINDING_COLUMNS),
        passed=NOTHING,
        closing=conclusion,
        output=sentences(*conclusion, *analysis.warnings),
        took_us=s.wait_us,
        properties=_properties(s, front.verdict),
        notifications=tuple(("warning", text) for text in (*lacking(analysis), *analysis.warnings)),
        facts=_facts(s, front, steps_found(analysis)),
    )


def place_of(source: Source | None) -> FilePosition | None:
    return FilePosition(source.file, line(source)) if source else None


def place_of_race(race: Race) -> FilePosition | None:
    return FilePosition(race.second.file, race.second.line) if race.second.file else None


def flagged_finding(f: Finding, step: StepSummary, path: str) -> FlaggedLine:
    """Return a finding as a flagged line, of the trace at this path."""
    library = f"It happens in {in_library(f)}" if f.in_library else ""
    doubt = "" if f.source is None or f.source.exact else f"The line is uncertain: {certainty(f.source)}"
    message = sentences(f"{what(f)} {measured(f, step)}", library, projected(f, step), f.fix, doubt)
    inside = " > ".join(f.scope) or (f.source.function if f.source else "") or " > ".join(chain(f))
    return FlaggedLine(
        rule=f.rule,
        severity=f.severity,
        title=f.title,
        message=message,
        place=place_of(f.source),
        rule_name=f.name,
        rule_help=f"{f.fix} Fine: {f.when_fine}",
        tags=("performance", f.cause.value.lower()),
        summary=f"{f.title}: {message}",
        inside=(inside, "function" if f.source and not f.scope else "member"),
        called_from=place_of(f.called_from),
        fingerprints={"syncscanFindingId/v1": f.id},
        figures=_figures(f),
        name=f"{what(f)} [{f.id}]",
        group=f.source.file if f.source else " > ".join(f.scope) or "syncscan",
        took_us=f.waited_us,
        cost=f"{f.title}: {measured(f, step)}",
        details=_details(f, step),
        rows=tuple(finding_rows([f], path)),
        changes=((source.caption(f.suggested), f.suggested.changes),) if f.suggested else (),
    )


def flagged_race(race: Race, path: str) -> FlaggedLine:
    """Return a race as a flagged line, at its later line."""
    message = sentences(f"{race.lines}, {race.count} times", race.why, race.fix)
    return FlaggedLine(
        rule=race.kind.value,
        severity=Severity.HIGH,
        title=race.title,
        message=message,
        place=place_of_race(race),
        rule_help=f"{race.why} {race.fix}",
        tags=("correctness", "race"),
        summary=f"{race.title}: {message}",
        inside=(race.second.function, "function"),
        fingerprints={"syncscanRaceId/v1": race.id},
        figures={"count": race.count},
        name=f"{race.kind.value} in {race.second} [{race.id}]",
        group=race.second.file,
        cost=f"{race.title}: {race.lines}",
        details=(f"why: {race.why}", f"instead: {race.fix}"),
        rows=(race_row(race, path),),
    )


def _details(f: Finding, step: StepSummary) -> tuple[str, ...]:
    source = f.source
    return (
        f"{places(f)} {certainty(source) if source else ''}".rstrip(),
        f"chain: {' > '.join(chain(f))}",
        projected(f, step),
        f"why: {f.why}",
        f"instead: {f.fix}",
        f"safe to remove: {USES[f.value]}",
        f"fine: {f.when_fine}",
    )


def _figures(f: Finding) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "cause": f.cause.value,
        "confidence": f.confidence.value,
        "phase": f.phase.value,
        "owner": f.owner,
        "value": f.value.value,
        "per_step": f.per_step,
    }
    if f.wait_us is not None:
        figures |= {"wait_us": f.wait_us, "bubble_us": f.bubble_us}
    if f.recoverable_us is not None:
        figures |= {name: getattr(f, name) for name in ("recoverable_us", "recoverable_range_us", "moved_us")}
    return figures


def _properties(s: StepSummary, verdict: str) -> Mapping[str, str]:
    values = {"syncscan": __version__, "bound": s.bound.value, "verdict": verdict}
    if s.observed_us:
        values |= {"observed_us": f"{s.observed_us:.3f}", "wait_us": f"{s.wait_us:.3f}"}
    if s.recoverable_us is not None:
        values["recoverable_us"] = f"{s.recoverable_us:.3f}"
    return values


def _facts(s: StepSummary, front: Front, steps_found: str) -> Mapping[str, Any]:
    step = {"observed_us": s.observed_us or None, "bound": s.bound.value, "verdict": front.verdict, "reason": s.reason}
    return {"step": step, "stepsFound": steps_found, "hidden": front.hidden}
