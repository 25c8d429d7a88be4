"""Render an Analysis, a Projection or any lines as plain text in short pages, for language models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from syncscan.model.analysis import Analysis
from syncscan.report import states
from syncscan.report.habits import HabitText
from syncscan.report.remedies import PLACES, RemedyText
from syncscan.report.shown_names import shown
from syncscan.report.story import FindingText, story_of

PAGE = 4_500
"""Characters per page. An answer should stay below 2,000 tokens; paths and numbers, the worst case, take a token per
2.5 to 3 characters (cl100k_base, o200k_base), prose one per 4."""
LINE = 500
"""Longest line, in characters; a longer one loses its middle."""
OF_FINDING = "id; what; where; saves; waits; device idle after it; each per step"
"""Fields of a finding's line, after its severity."""


def render(analysis: Analysis, page: int = 1) -> str:
    """Return one page with the verdict, what to change, and the findings and habits with their ids.

    Args:
        analysis: any.
        page: from 1; behind the last the text says how many there are.
    """
    return paged(_lines(analysis), page)


def paged(lines: Iterable[str], page: int = 1, *, tabs: bool = False) -> str:
    """Return one page of these lines, without control characters; the last line says how to get the next page.

    Args:
        lines: any; one longer than `LINE` loses its middle.
        page: from 1.
        tabs: whether tabs and carriage returns at line ends stay, as in a patch.
    """
    pages = _pages([_line(line, "\t" if tabs else "") for line in lines])
    if not 1 <= page <= len(pages):
        return f"There is no page {page}; the last is {len(pages)}.\n"
    more = [f"[page {page} of {len(pages)}; next: page {page + 1}]"] if page < len(pages) else []
    return "\n".join([*pages[page - 1], *more]) + "\n"


def _line(line: str, separator: str) -> str:
    end = "\r" if separator and line.endswith("\r") else ""
    parts = line.removesuffix("\r").split(separator) if separator else [line]
    return separator.join(shown(part, LINE) for part in parts) + end


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
    yield from (f"{f.id} saves {f.once_compiled}" for f in story.findings if f.once_compiled)
    if analysis.states:
        yield f"states, projected: {'; '.join(states.lines(analysis.states))}"
    if story.habits:
        yield "habits (id; what; saves; evidence):"
        yield from map(_habit, story.habits)
    if story.host_sentence:
        yield story.host_sentence
    yield story.steps_found
    if story.hidden:
        yield story.hidden
    yield from (f"warning: {warning}" for warning in story.warnings)


def remedy(entry: RemedyText) -> str:
    """Return one change as a line."""
    ids = ", ".join(member.id for member in entry.members[:PLACES]) or entry.habit
    more = f" and {len(entry.members) - PLACES} more" if len(entry.members) > PLACES else ""
    head = f"{entry.number}. {entry.name} [{ids}{more}]: {entry.saves}, {entry.doubt}. "
    return head + shown(entry.fix, max(LINE - len(head), 1))  # shorten the fix rather than the figures


def finding(entry: FindingText) -> str:
    """Return a finding as one line, with the fields of `OF_FINDING`."""
    parts = (entry.id, entry.title, entry.where, entry.saves, entry.waits, entry.idle)
    return f"- {entry.severity.value} {'; '.join(parts)}"


def _habit(habit: HabitText) -> str:
    return f"- {habit.severity.value} {habit.id}; {habit.name}; {habit.saves}; {habit.evidence}"
