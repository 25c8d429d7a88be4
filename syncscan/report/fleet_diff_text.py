"""From a FleetDiff to a terminal report."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.model.diff import Change
from syncscan.model.fleet_diff import FleetDiff
from syncscan.model.printable import printable
from syncscan.report.fleet_diff_story import TITLES, FleetDiffStory, ToldJobChange, story_of
from syncscan.report.terminal import written

_COLORS = {Change.NEW: "bold red", Change.CHANGED: "yellow", Change.GONE: "green"}
SHOWN = 20
"""Places of a kind that are shown; JSON has them all."""


def render(diff: FleetDiff, width: int = 100, color: bool = False) -> str:
    """The two states of a job as text.

    Args:
        diff: any.
        width: of the terminal, in characters.
        color: whether to write colours.
    """
    return written(_parts(story_of(diff)), width, color)


def _parts(story: FleetDiffStory) -> Iterator[RenderableType]:
    yield Text(f"before: {story.before}", "dim")
    yield Text(f"after:  {story.after}", "dim")
    yield Text(f"{story.verdict}.", "bold")
    for sentence in (story.step, story.held_up, story.promise):
        if sentence:
            yield Text(printable(sentence))
    for kind, changes in story.changes.items():
        yield Text(f"{TITLES[kind]}:", "bold")
        yield _table(changes[:SHOWN], _COLORS[kind])
        if len(changes) > SHOWN:
            yield Text(f" … and {len(changes) - SHOWN} more in --format json.")
    if story.same:
        yield Text(f"{story.same}.", "dim")
    for note in story.notes:
        yield Text(f"note: {printable(note)}", "dim")


def _table(changes: tuple[ToldJobChange, ...], color: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for told in changes:
        grid.add_row(Text(f" {told.sign}", color), Text(printable(told.what, 160), "bold"))
        for line in (told.where, told.numbers):
            if line:
                grid.add_row("", Text(printable(line, 240)))
    return grid
