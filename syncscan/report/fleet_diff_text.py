"""Render a FleetDiff for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from syncscan.model.fleet_diff import FleetDiff
from syncscan.report.change_lines import change_lines, ending
from syncscan.report.fleet_diff_story import TITLES, FleetDiffStory, story_of
from syncscan.report.printable import printable
from syncscan.report.terminal import written


def render(diff: FleetDiff, width: int = 100, color: bool = False) -> str:
    """Return the two states of a job as text.

    Args:
        width: the width of the terminal, in characters.
        color: whether to write colors.
    """
    return written(_parts(story_of(diff)), width, color)


def _parts(story: FleetDiffStory) -> Iterator[RenderableType]:
    yield Text(printable(f"before: {story.before}"), "dim")
    yield Text(printable(f"after:  {story.after}"), "dim")
    yield Text(f"{story.verdict}.", "bold")
    for sentence in (story.step, story.held_up, story.promise):
        if sentence:
            yield Text(printable(sentence))
    yield from change_lines(story.changes, TITLES, 160)
    yield from ending(story.same, story.notes)
