"""Render a FleetDiff as Markdown for a pull request's comment."""

from __future__ import annotations

from collections.abc import Iterator

from syncscan.model.fleet_diff import FleetDiff
from syncscan.report.diff_story import ChangeText
from syncscan.report.fleet_diff_story import TITLES, FleetDiffStory, story_of
from syncscan.report.markup import code, escaped
from syncscan.version import __version__

SHOWN = 50
"""Places shown per kind of change; JSON has them all."""


def render(diff: FleetDiff) -> str:
    """Return the two states of a job as GitHub-flavored Markdown, no longer than a comment may be."""
    return "\n\n".join(_parts(story_of(diff))) + "\n"


def _parts(story: FleetDiffStory) -> Iterator[str]:
    yield f"### {escaped(story.verdict)}"
    yield from (escaped(sentence) for sentence in (story.step, story.held_up, story.promise) if sentence)
    for kind, changes in story.changes.items():
        yield f"**{TITLES[kind]}**"
        yield "\n".join(_change(change) for change in changes[:SHOWN])
        if len(changes) > SHOWN:
            yield f"… and {len(changes) - SHOWN} more."
    if story.same:
        yield f"{story.same}."
    yield from (f"> note: {escaped(note)}" for note in story.notes)
    yield f"<sub>before: {story.before}; after: {story.after} · syncscan {__version__}</sub>"


def _change(change: ChangeText) -> str:
    where = f" ({code(change.where)})" if change.where else ""
    return f"- {escaped(change.what)}{where}: {escaped(change.numbers)}"
