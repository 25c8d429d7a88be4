"""Render an Analysis as Markdown for a pull request's comment or a job's summary: verdict, table, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from syncscan.facts.phases import PhaseSummary
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding, Source
from syncscan.model.states import States
from syncscan.model.step import StepSummary
from syncscan.report import habits, host, races, remedies, source, states
from syncscan.report.habits import HabitText
from syncscan.report.markup import cell, code, escaped
from syncscan.report.phrases import certainty, chain, facts, places, sentences
from syncscan.report.remedies import RemedyText
from syncscan.report.shown_names import shown
from syncscan.report.story import FindingText, Story, story_of
from syncscan.report.timed_steps import unprofiled
from syncscan.report.units import duration
from syncscan.version import __version__

MAX_CHARACTERS = 60_000
"""Characters of the report; GitHub cuts a comment at 65,536."""
OPENING = 1200
"""Characters between the verdict and what to do."""
MAX_ROWS = 50
"""Findings in the table."""


def render(analysis: Analysis) -> str:
    """Return the report as GitHub-flavored Markdown, no longer than a comment may be."""
    story, s = story_of(analysis), analysis.step
    top = [f"### {story.verdict}", escaped(story.opening, OPENING), *_to_do(story)]
    if story.phases:
        top.append("\n".join(_phases(story.phases[:MAX_ROWS])))
    if story.findings:
        top.append("\n".join(_table(story.findings[:MAX_ROWS], story.costed)))
    if len(story.findings) > MAX_ROWS:
        top.append(f"… and {len(story.findings) - MAX_ROWS} more{', which cost less' if story.costed else ''}.")
    top += _states(analysis.states)
    top += _races(story)
    top += _habits(story.habits)
    if story.kernels_lead:
        top += _kernels(story)
    top += _compiled(story)
    if story.host_leads:
        top += _host(story)
    bottom = [
        escaped(story.steps_found),
        *([escaped(story.hidden)] if story.hidden else []),
        *(f"> warning: {escaped(w)}" for w in story.warnings[:10]),
        _provenance(analysis),
    ]
    room = MAX_CHARACTERS - sum(len(part) + 2 for part in top + bottom)
    return "\n\n".join([*top, *_details([entry.of for entry in story.findings], s, room), *bottom]) + "\n"


def _to_do(story: Story) -> Iterator[str]:
    """Yield what to change as a numbered list, with the sentences before and after it."""
    if story.nothing:
        yield f"→ {escaped(story.nothing)}"
    if story.remedies:
        yield f"**{story.to_do}**"
        yield "\n".join(_remedy(entry) for entry in story.remedies[: remedies.SHOWN])
    if len(story.remedies) > remedies.SHOWN:
        yield f"… and {len(story.remedies) - remedies.SHOWN} more."
    if story.then or story.stop:
        yield f"→ {escaped(sentences(story.then, story.stop))}"


def _remedy(remedy: RemedyText) -> str:
    where = f" ({code(remedy.where)})" if remedy.where else ""
    return f"{remedy.number}. **{remedy.saves}**, {remedy.doubt}: {escaped(remedy.what)}{where}. {escaped(remedy.fix)}"


def _states(of: States | None) -> Iterator[str]:
    """Yield the step with its syncs or without, compiled or not, folded."""
    if of is not None:
        yield f"<details><summary>{states.TITLE}</summary>"
        rows = (f"| {s.name} | {s.takes} | {s.between} | {s.change} |" for s in states.rows(of))
        yield "\n".join(["| the step | takes | between | change |", "|---|--:|--:|--:|", *rows])
        yield "</details>"


def _habits(entries: Sequence[HabitText]) -> Iterator[str]:
    """Yield each habit's evidence and fix, folded."""
    if entries:
        yield f"<details><summary>{habits.TITLE}: evidence for each habit, and what to do instead</summary>"
        yield from (_habit(habit) for habit in entries[: habits.SHOWN])
        if len(entries) > habits.SHOWN:
            yield f"*… and {len(entries) - habits.SHOWN} more.*"
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


def _habit(habit: HabitText) -> str:
    place = f" ({code(habit.where)})" if habit.where else ""
    doubt = f", {habit.doubt}" if habit.doubt else ""
    lines = [
        f"**{escaped(habit.title)}**{place}: {habit.saves}{doubt} ({code(habit.id)}, {habit.severity.value})",
        *(f"- {name}: {escaped(text)}" for name, text in habits.facts(habit)),
    ]
    return "\n".join(lines)


def _phases(phases: Sequence[PhaseSummary]) -> Iterator[str]:
    yield "| phase | batch | steps | median time |"
    yield "|---|--:|--:|--:|"
    for p in phases:
        yield f"| {p.phase.value} | {'' if p.batch is None else p.batch} | {p.count} | {duration(p.median_us)} |"


def _host(story: Story) -> Iterator[str]:
    """Yield the host's time as folded tables, with what they are based on."""
    if story.host_tables:
        yield f"<details><summary>{host.TITLE}</summary>"
        for table in story.host_tables:
            yield f"**{escaped(table.title)}**"
            yield "\n".join(_of_host(table))
        yield from (escaped(note) for note in story.host_notes)
        yield "</details>"


def _kernels(story: Story) -> Iterator[str]:
    """Yield what is left to gain where the device is the limit, and a folded table of the longest kernels."""
    if story.kernels:
        yield escaped(story.kernels)
    if story.kernel_table:
        yield f"<details><summary>{story.kernel_table.title}</summary>"
        yield "\n".join(_of_host(story.kernel_table))
        yield "</details>"


def _compiled(story: Story) -> Iterator[str]:
    """Yield dynamo's graph breaks: a sentence, a folded table, and notes on what is unknown."""
    if story.compiled:
        yield escaped(story.compiled)
    if story.compile_table:
        yield f"<details><summary>{story.compile_table.title}</summary>"
        yield "\n".join(_of_host(story.compile_table))
        yield "</details>"
    yield from (escaped(note) for note in story.compile_notes)


def _of_host(table: host.TextTable) -> Iterator[str]:
    yield f"| {' | '.join(escaped(name) for name in table.head)} |"
    yield f"|{'---|' * table.words}{'--:|' * (len(table.head) - table.words)}"
    for row in table.rows:
        cells = (cell(text) if number < table.code else escaped(text) for number, text in enumerate(row))
        yield f"| {' | '.join(cells)} |"
    if table.more:
        yield f"| … {table.more} more |{' |' * (len(table.head) - 1)}"


def _table(findings: Sequence[FindingText], costed: bool) -> Iterator[str]:
    """Yield a table row per finding; without costs, for a dry run, only what waits and where."""
    costs = " saves *(projected)* | waits *(measured)* | idle after |" if costed else ""
    yield f"| severity |{costs} what | where |"
    yield f"|---|{'--:|--:|--:|' if costed else ''}---|---|"
    for finding in findings:
        where = ", ".join(part for part in (cell(finding.where), *finding.circumstances) if part)
        numbers = f" {finding.saves} | {finding.waits} | {finding.idle} |" if costed else ""
        yield f"| {finding.severity.value} |{numbers} {escaped(shown(finding.title, 160))} | {where} |"


def _details(findings: Sequence[Finding], step: StepSummary, room: int) -> Iterator[str]:
    """Yield a folded list of each finding's reason and fix, as many as fit."""
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
    """Yield the flagged line and those around it, in a fenced block that no line can close."""
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
    if known := unprofiled(analysis):
        parts.append(f"{known} without the profiler")
    return f"<sub>{' · '.join(parts)}</sub>"
