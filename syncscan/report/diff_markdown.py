"""Render a Diff as Markdown for a pull request's comment or a job's summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscan.model.diff import Diff
from syncscan.report.diff_story import TITLES, ChangeText, story_of
from syncscan.report.markup import cell, escaped
from syncscan.version import __version__

MAX_ROWS = 50
"""Rows per table."""


def render(diff: Diff) -> str:
    """Return the diff as GitHub-flavored Markdown."""
    story = story_of(diff)
    parts = [f"### {escaped(story.verdict)}", f"{escaped(story.before)} → {escaped(story.after)}"]
    parts += [f"→ {escaped(sentence)}." for sentence in story.moved]
    parts += [escaped(sentence) for sentence in (story.step, story.held_up, story.promise, story.habits) if sentence]
    for kind, changes in story.changes.items():
        parts += [f"**{TITLES[kind]}**", "\n".join(_table(changes))]
    parts += [f"{story.same}."] * bool(story.same)
    parts += [f"> note: {escaped(note)}" for note in story.notes]
    return "\n\n".join([*parts, f"<sub>syncscan {__version__}</sub>"]) + "\n"


def _table(changes: Sequence[ChangeText]) -> Iterator[str]:
    yield "| | sync | where | |"
    yield "|---|---|---|---|"
    for change in changes[:MAX_ROWS]:
        yield f"| {escaped(change.sign)} | {cell(change.what)} | {cell(change.where)} | {escaped(change.numbers)} |"
    if len(changes) > MAX_ROWS:
        yield f"| | … and {len(changes) - MAX_ROWS} more | | |"
