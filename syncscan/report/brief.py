"""From an Analysis, a Projection or any lines to plain text in short pages, for programs that read text for money."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from syncscan.model.analysis import Analysis
from syncscan.report.habits import ToldHabit
from syncscan.report.names import shown
from syncscan.report.remedies import PLACES, ToldRemedy
from syncscan.report.story import ToldFinding, story_of

PAGE = 4_500
"""Characters a page. An answer is to stay below 2,000 tokens; paths and numbers, the worst of what stands here, take a
token every 2.5 to 3 characters (cl100k_base, o200k_base), prose one every 4."""
LINE = 500
"""Characters of one line: of a name that a trace makes long the middle goes."""
OF_FINDING = "id; what; where; saves; waits; device idle behind it; each a step"
"""What a finding's line holds behind its severity."""


def render(analysis: Analysis, page: int = 1) -> str:
    """The story of an analysis without ornament: verdict, what to change, findings and habits with their ids.

    Args:
        analysis: any.
        page: from 1; behind the last the text says how many there are.
    """
    return paged(_lines(analysis), page)


def paged(lines: Iterable[str], page: int = 1) -> str:
    """One page of these lines, each without what a terminal would obey; the last line says how to get the next.

    Args:
        lines: any; one longer than `LINE` loses its middle.
        page: from 1.
    """
    pages = _pages([shown(line, LINE) for line in lines])
    if not 1 <= page <= len(pages):
        return f"There is no page {page}: they go from 1 to {len(pages)}.\n"
    more = [f"[page {page} of {len(pages)}; the next: page {page + 1}]"] if page < len(pages) else []
    return "\n".join([*pages[page - 1], *more]) + "\n"


def _pages(lines: Sequence[str]) -> list[list[str]]:
    pages: list[list[str]] = [[]]
    room = PAGE
    for line in lines:
        if len(line) + 1 > room and pages[-1]:
            pages.append([])
            room = PAGE
        pages[-1].append(line)
        room -= len(line) + 1
    return pages


def _lines(analysis: Analysis) -> Iterator[str]:
    story, info = story_of(analysis), analysis.trace.info
    devices = ", ".join(name for name in info.devices if name)
    yield f"trace: {info.path}; {devices or 'no device named'}"
    yield f"verdict: {story.verdict}. {story.because}"
    yield story.summary
    if story.nothing:
        yield story.nothing
    if story.remedies:
        yield f"{story.to_do}:"
        yield from map(remedy, story.remedies)
    if story.then:
        yield story.then
    if story.findings:
        yield f"findings ({OF_FINDING}):"
        yield from map(finding, story.findings)
    if story.habits:
        yield "habits (id; what; saves; what proves it):"
        yield from map(_habit, story.habits)
    if story.host_sentence:
        yield story.host_sentence
    yield story.steps_found
    if story.hidden:
        yield story.hidden
    yield from (f"warning: {warning}" for warning in story.warnings)


def remedy(told: ToldRemedy) -> str:
    """What to change, in a line."""
    ids = ", ".join(member.id for member in told.members[:PLACES]) or told.habit
    more = f" and {len(told.members) - PLACES} more" if len(told.members) > PLACES else ""
    said = f"{told.number}. {told.name} [{ids}{more}]: {told.saves}, {told.doubt}. "
    return said + shown(told.fix, max(LINE - len(said), 1))  # rather than that the figures go from the middle of a line


def finding(told: ToldFinding) -> str:
    """A finding in a line, by `OF_FINDING`."""
    parts = (told.id, told.title, told.where, told.saves, told.waits, told.idle)
    return f"- {told.severity.value} {'; '.join(parts)}"


def _habit(told: ToldHabit) -> str:
    return f"- {told.severity.value} {told.id}; {told.name}; {told.saves}; {told.evidence}"
