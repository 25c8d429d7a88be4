"""From an Analysis to Markdown for a pull request's comment or a job's summary: verdict, table, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from syncscan.facts.phases import PhaseSummary
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding, Source
from syncscan.model.step import StepSummary
from syncscan.report import habits, host, races, remedies, source
from syncscan.report.habits import ToldHabit
from syncscan.report.markup import cell, code, escaped
from syncscan.report.names import shown
from syncscan.report.phrases import certainty, chain, facts, places
from syncscan.report.remedies import ToldRemedy
from syncscan.report.story import Story, ToldFinding, story_of
from syncscan.report.units import duration
from syncscan.version import __version__

MAX_CHARACTERS = 60_000
"""GitHub cuts a comment at 65,536 characters."""
OPENING = 1200
"""Characters between the verdict and what to do."""
MAX_ROWS = 50
"""Findings in the table."""


def render(analysis: Analysis) -> str:
    """The report as GitHub-flavoured Markdown, never longer than a comment may be."""
    story, s = story_of(analysis), analysis.step
    top = [f"### {story.verdict}", escaped(story.opening, OPENING), *_to_do(story)]
    if story.phases:
        top.append("\n".join(_phases(story.phases[:MAX_ROWS])))
    if story.findings:
        top.append("\n".join(_table(story.findings[:MAX_ROWS], story.costed)))
    if len(story.findings) > MAX_ROWS:
        top.append(f"… and {len(story.findings) - MAX_ROWS} more{', which cost less' if story.costed else ''}.")
    top += _races(story)
    top += _habits(story.habits)
    if story.host_leads:
        top += _host(story)
    bottom = [
        escaped(story.steps_found),
        *([escaped(story.hidden)] if story.hidden else []),
        *(f"> warning: {escaped(w)}" for w in story.warnings[:10]),
        _provenance(analysis),
    ]
    room = MAX_CHARACTERS - sum(len(part) + 2 for part in top + bottom)
    return "\n\n".join([*top, *_details([told.of for told in story.findings], s, room), *bottom]) + "\n"


def _to_do(story: Story) -> Iterator[str]:
    """What to change as a numbered list, between why that is no sync and what limits the step then."""
    if story.nothing:
        yield f"→ {escaped(story.nothing)}"
    if story.remedies:
        yield f"**{story.to_do}**"
        yield "\n".join(_remedy(told) for told in story.remedies[: remedies.SHOWN])
    if len(story.remedies) > remedies.SHOWN:
        yield f"… and {len(story.remedies) - remedies.SHOWN} more."
    if story.then:
        yield f"→ {escaped(story.then)}"


def _remedy(told: ToldRemedy) -> str:
    where = f" ({code(told.where)})" if told.where else ""
    return f"{told.number}. **{told.saves}**, {told.doubt}: {escaped(told.what)}{where}. {escaped(told.fix)}"


def _habits(found: Sequence[ToldHabit]) -> Iterator[str]:
    """What proves each habit, and what to do, folded."""
    if found:
        yield f"<details><summary>{habits.TITLE}: what proves each habit, and what to do instead</summary>"
        yield from (_habit(told) for told in found[: habits.SHOWN])
        if len(found) > habits.SHOWN:
            yield f"*… and {len(found) - habits.SHOWN} more.*"
        yield "</details>"


def _races(story: Story) -> Iterator[str]:
    """Yield the races as a list."""
    if story.races:
        yield f"**{races.TITLE}**"
        yield "\n".join(
            f"- {code(races.lines(race))}: {escaped(race.text.title)}. {escaped(race.text.fix)}"
            for race in story.races[: races.SHOWN]
        )
    if len(story.races) > races.SHOWN:
        yield f"… and {len(story.races) - races.SHOWN} more."


def _habit(told: ToldHabit) -> str:
    where = f" ({code(told.where)})" if told.where else ""
    doubt = f", {told.doubt}" if told.doubt else ""
    lines = [
        f"**{escaped(told.title)}**{where}: {told.saves}{doubt} ({code(told.id)}, {told.severity.value})",
        *(f"- {name}: {escaped(text)}" for name, text in habits.facts(told)),
    ]
    return "\n".join(lines)


def _phases(phases: Sequence[PhaseSummary]) -> Iterator[str]:
    yield "| phase | batch | steps | median time |"
    yield "|---|--:|--:|--:|"
    for p in phases:
        yield f"| {p.phase.value} | {'' if p.batch is None else p.batch} | {p.count} | {duration(p.median_us)} |"


def _host(story: Story) -> Iterator[str]:
    """Where the host's time goes: folded tables, and what they rest on."""
    if story.host_tables:
        yield f"<details><summary>{host.TITLE}</summary>"
        for table in story.host_tables:
            yield f"**{escaped(table.title)}**"
            yield "\n".join(_of_host(table))
        yield from (escaped(note) for note in story.host_notes)
        yield "</details>"


def _of_host(table: host.Table) -> Iterator[str]:
    yield f"| {' | '.join(escaped(name) for name in table.head)} |"
    yield f"|{'---|' * table.words}{'--:|' * (len(table.head) - table.words)}"
    for row in table.rows:
        cells = (cell(text) if number < table.code else escaped(text) for number, text in enumerate(row))
        yield f"| {' | '.join(cells)} |"
    if table.more:
        yield f"| … {table.more} more |{' |' * (len(table.head) - 1)}"


def _table(findings: Sequence[ToldFinding], costed: bool) -> Iterator[str]:
    """A row for each; without costs, as of a dry run, what waits and where alone."""
    costs = " saves *(projected)* | waits *(measured)* | idle behind |" if costed else ""
    yield f"| severity |{costs} what | where |"
    yield f"|---|{'--:|--:|--:|' if costed else ''}---|---|"
    for told in findings:
        where = ", ".join(part for part in (cell(told.where), *told.circumstances) if part)
        numbers = f" {told.saves} | {told.waits} | {told.idle} |" if costed else ""
        yield f"| {told.severity.value} |{numbers} {escaped(shown(told.title, 160))} | {where} |"


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
    d, line = f.diagnosis, f.where.source
    lines = [
        f"**{number}. {escaped(d.title)}** ({code(f.id)}, {d.cause.value}, confidence {f.confidence.value})",
        f"- line: {code(places(f.where))}{_doubt(line)}" if places(f.where) else "",
        f"- scope: {code(' > '.join(f.where.scope))}" if f.where.scope else "",
        f"- chain: {code(' > '.join(chain(f)))}",
        *(f"- {name}: {escaped(text)}" for name, text in facts(f, step) if text),
    ]
    return "\n".join([*(text for text in lines if text), *_source(f.excerpt)])


def _source(excerpt: Excerpt | None) -> Iterator[str]:
    """The flagged line with those around it, as a fenced block that no line in it can end."""
    if excerpt:
        text = "\n".join(source.numbered(excerpt))
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        yield f"\n{fence}python\n{text}\n{fence}"
        if excerpt.newer:
            yield source.NEWER


def _doubt(line: Source | None) -> str:
    return f", {escaped(certainty(line))}" if line else ""


def _provenance(analysis: Analysis) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [f"syncscan {__version__}", code(PurePath(info.path).name), *(escaped(d) for d in info.devices[:1] if d)]
    parts += [f"{s.count} steps" + (f" of {duration(s.observed_us)}" if s.observed_us else "")]
    if s.unprofiled_us:
        parts.append(f"{duration(s.unprofiled_us)} without the profiler")
    return f"<sub>{' · '.join(parts)}</sub>"
