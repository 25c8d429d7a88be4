"""From an Analysis to Markdown for a pull request's comment or a job's summary: verdict, table, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Source
from syncscan.model.host import Host
from syncscan.model.phases import PhaseSummary, phases_of
from syncscan.model.step import StepSummary
from syncscan.report import host, remedies
from syncscan.report.markup import cell, code, escaped
from syncscan.report.phrases import (
    USES,
    VERDICTS,
    certainty,
    chain,
    first_screen,
    measured,
    places,
    projected,
    steps_found,
    waited,
    what,
)
from syncscan.report.units import duration, times
from syncscan.version import __version__

MAX_CHARACTERS = 60_000
"""GitHub cuts a comment at 65,536 characters."""
MAX_ROWS = 50
"""Findings in the table."""


def render(analysis: Analysis) -> str:
    """The report as GitHub-flavoured Markdown, never longer than a comment may be."""
    s, findings = analysis.step, analysis.findings
    top = [f"### {VERDICTS[s.bound]}", escaped(first_screen(analysis))]
    top += [f"→ {escaped(advice)}" for advice in s.advice]
    if listed := [escaped(sentence.strip()) for sentence in remedies.lines(analysis)]:
        top.append("\n".join([listed[0], "", *listed[1:]]))
    if phases := phases_of(analysis.trace):
        top.append("\n".join(_phases(phases[:MAX_ROWS])))
    if findings:
        top.append("\n".join(_table(findings[:MAX_ROWS], s)))
    if len(findings) > MAX_ROWS:
        top.append(f"… and {len(findings) - MAX_ROWS} more, which cost less.")
    if host.leads(analysis):
        top += _host(analysis.host_time)
    bottom = [
        escaped(steps_found(analysis)),
        *(f"> warning: {escaped(w)}" for w in analysis.warnings[:10]),
        _provenance(analysis),
    ]
    room = MAX_CHARACTERS - sum(len(part) + 2 for part in top + bottom)
    return "\n\n".join([*top, *_details(findings, s, room), *bottom]) + "\n"


def _phases(phases: Sequence[PhaseSummary]) -> Iterator[str]:
    yield "| phase | batch | steps | median time |"
    yield "|---|--:|--:|--:|"
    for p in phases:
        yield f"| {p.phase.value} | {'' if p.batch is None else p.batch} | {p.count} | {duration(p.median_us)} |"


def _host(of: Host) -> Iterator[str]:
    """Where the host's time goes: folded tables, and what they rest on."""
    tables = host.tables(of)
    if tables:
        yield f"<details><summary>{host.TITLE}</summary>"
        for table in tables:
            yield f"**{escaped(table.title)}**"
            yield "\n".join(_of_host(table))
        yield from (escaped(note) for note in host.notes(of))
        yield "</details>"


def _of_host(table: host.Table) -> Iterator[str]:
    yield f"| {' | '.join(escaped(name) for name in table.head)} |"
    yield f"|{'---|' * table.words}{'--:|' * (len(table.head) - table.words)}"
    for row in table.rows:
        cells = (cell(text) if number < table.code else escaped(text) for number, text in enumerate(row))
        yield f"| {' | '.join(cells)} |"
    if table.more:
        yield f"| … {table.more} more |{' |' * (len(table.head) - 1)}"


def _table(findings: Sequence[Finding], step: StepSummary) -> Iterator[str]:
    yield "| severity | saves *(projected)* | waits *(measured)* | idle behind | what | where |"
    yield "|---|--:|--:|--:|---|---|"
    for f in findings:
        measurements = (waited(f.wait_us, step), waited(f.bubble_us, step))
        numbers = [duration(f.gain.recoverable_us) if f.gain else "–", *measurements]
        where = ", ".join(part for part in (cell(places(f.where)), _circumstances(f)) if part)
        yield f"| {f.severity.value} | {' | '.join(numbers)} | {cell(what(f))} | {where} |"


def _circumstances(f: Finding) -> str:
    parts = [f.where.phase.value] if f.where.phase.value == "backward" else []
    return ", ".join(parts if abs(f.per_step - 1) < 0.005 else [*parts, times(f.per_step)])


def _details(findings: Sequence[Finding], step: StepSummary, room: int) -> Iterator[str]:
    """A folded list of what each finding is and what to do, as many as there is room for."""
    items: list[str] = []
    used = 200
    for number, f in enumerate(findings, 1):
        item = _detail(number, f, step)
        used += len(item) + 2
        if used > room:
            items.append(f"*The other {len(findings) - number + 1} don't fit here.*")
            break
        items.append(item)
    if items:
        yield "<details><summary>Why each one waits, and what to do instead</summary>"
        yield from items
        yield "</details>"


def _detail(number: int, f: Finding, step: StepSummary) -> str:
    d, source = f.diagnosis, f.where.source
    lines = [
        f"**{number}. {escaped(d.title)}** ({code(f.id)}, {d.cause.value}, confidence {f.confidence.value})",
        f"- line: {code(places(f.where))}{_doubt(source)}" if places(f.where) else "",
        f"- scope: {code(' > '.join(f.where.scope))}" if f.where.scope else "",
        f"- chain: {code(' > '.join(chain(f)))}",
        f"- measured: {measured(f, step)}",
        f"- projected: {projected(f, step)}" if f.gain else "",
        f"- why: {escaped(d.why)}",
        f"- instead: {escaped(d.fix)}",
        f"- safe to remove: {USES[f.where.use]}",
        f"- fine: {escaped(d.when_fine)}",
    ]
    return "\n".join(text for text in lines if text)


def _doubt(source: Source | None) -> str:
    return f", {escaped(certainty(source))}" if source else ""


def _provenance(analysis: Analysis) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [f"syncscan {__version__}", code(PurePath(info.path).name), *(escaped(d) for d in info.devices[:1])]
    parts += [f"{s.count} steps of {duration(s.observed_us)}"]
    if s.unprofiled_us:
        parts.append(f"{duration(s.unprofiled_us)} without the profiler")
    return f"<sub>{' · '.join(parts)}</sub>"
