"""Render a Fleet as Markdown for a pull request's comment or a job's summary: who delays the job, what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscan.model.fleet import Fleet
from syncscan.report.fleet_story import FIGURES, FleetStory, JobFindingText, story_of
from syncscan.report.markup import cell, code, escaped
from syncscan.report.shown_names import shown
from syncscan.version import __version__

MAX_FINDINGS = 50
MAX_UNREAD = 20
MAX_NOTES = 10
OPENING = 1200
"""Characters between the verdict and what to do."""


def render(fleet: Fleet) -> str:
    """Return the report of a job as GitHub-flavored Markdown, no longer than a comment may be."""
    story = story_of(fleet)
    return "\n\n".join(_parts(story)) + "\n"


def _parts(story: FleetStory) -> Iterator[str]:
    yield f"### {escaped(story.verdict)}"
    yield escaped(" ".join(part for part in (story.reason, story.missing, story.summary) if part), OPENING)
    yield from (f"→ {escaped(sentence)}" for sentence in story.then)
    if story.findings:
        yield "\n".join(_findings(story.findings[:MAX_FINDINGS]))
    if len(story.findings) > MAX_FINDINGS:
        yield f"… and {len(story.findings) - MAX_FINDINGS} more."
    if story.wrong:
        wrong = [f"- {escaped(sentence, 300)}" for sentence in story.wrong[:MAX_NOTES]]
        yield "\n".join(("**What a single rank's trace gets wrong**\n", *wrong))
    if story.ranks:
        yield "\n".join(_ranks(story))
    if story.quantiles:
        yield "\n".join(_quantiles(story))
    yield from _unread(story)
    yield from (f"> note: {escaped(note)}" for note in story.notes[:MAX_NOTES])
    yield f"<sub>{' · '.join(escaped(part) for part in (f'syncscan {__version__}', *story.headline))}</sub>"


def _findings(findings: Sequence[JobFindingText]) -> Iterator[str]:
    yield "| gains the job *(projected)* | waits *(measured)* | on | what | where |"
    yield "|--:|--:|---|---|---|"
    for t in findings:
        gain = "; ".join(part for part in (t.share, t.doubt) if part)
        saves = f"{t.saves} ({gain})" if gain else t.saves
        intended = " (intended)" if t.of.first.intended else ""
        what = f"{escaped(shown(t.of.first.title, 160))}{intended}"
        yield f"| {saves} | {t.waits} | {t.on} | {what} | {cell(t.where)} |"


def _ranks(story: FleetStory) -> Iterator[str]:
    yield f"| rank | {' | '.join(FIGURES)} | late by |"
    yield f"|--:|{'--:|' * len(FIGURES)}---|"
    for rank in story.ranks:
        yield f"| {rank.rank} | {' | '.join(rank.figures)} | {rank.why} |"


def _quantiles(story: FleetStory) -> Iterator[str]:
    yield "| all ranks | least | median | 95% | most | on rank |"
    yield "|---|--:|--:|--:|--:|--:|"
    for q in story.quantiles:
        yield f"| {q.name} | {q.least} | {q.median} | {q.high} | {q.most} | {q.rank} |"


def _unread(story: FleetStory) -> Iterator[str]:
    if story.unread:
        lines = [f"- {code(path)}: {escaped(reason, 300)}" for path, reason in story.unread[:MAX_UNREAD]]
        more = len(story.unread) - MAX_UNREAD
        yield "\n".join(("**Not read**\n", *lines, *([f"- … and {more} more"] if more > 0 else [])))
