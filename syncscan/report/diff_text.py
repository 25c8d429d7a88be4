"""Render a Diff for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from syncscan.model.diff import Diff
from syncscan.report.change_lines import change_lines, ending
from syncscan.report.diff_story import TITLES, DiffStory, story_of
from syncscan.report.printable import printable
from syncscan.report.terminal import written


def render(diff: Diff, width: int = 100, color: bool = False) -> str:
    """Return the diff as text.

    Args:
        width: the width of the terminal, in characters.
        color: whether to write colors.
    """
    return written(_parts(story_of(diff)), width, color)


def _parts(story: DiffStory) -> Iterator[RenderableType]:
    yield Text(printable(f"before: {story.before}"), "dim")
    yield Text(printable(f"after:  {story.after}"), "dim")
    yield Text(f"{story.verdict}.", "bold")
    for sentence in story.moved:
        yield Text.assemble(("→ ", "bold green"), printable(f"{sentence}."))
    for sentence in (story.step, story.promise, story.habits):
        if sentence:
            yield Text(printable(sentence))
    yield from change_lines(story.changes, TITLES, 120)
    yield from ending(story.same, story.notes)
