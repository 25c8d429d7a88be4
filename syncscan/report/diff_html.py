"""Render a Diff and an analysis of each state as one self-contained HTML page, with one step of each on one ruler.

The page runs no script: its Content-Security-Policy allows none, and no style but its own, by hash. jinja2 escapes
every value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from syncscan.model.analysis import Analysis
from syncscan.model.diff import Diff
from syncscan.report import step_picture
from syncscan.report.assets import asset, template
from syncscan.report.diff_story import TITLES, ChangeText, DiffStory, story_of
from syncscan.report.phrases import sentences
from syncscan.report.shown_names import shown
from syncscan.version import __version__

MAX_ROWS = 100
"""Rows per table; JSON has them all."""


def render(diff: Diff, before: Analysis | None = None, after: Analysis | None = None) -> str:
    """Return the diff as one HTML document.

    Args:
        before: a recording of the earlier state, of which a step is drawn; None for a job.
        after: one of the later state, likewise.
    """
    story = story_of(diff)
    said = (*story.moved, story.step, story.held_up, story.promise, story.habits)
    drawn = step_picture.measured(before, after) if before and after else None
    return template("diff.html.j2").render(
        version=__version__,
        style=asset("page.css") + step_picture.style() + asset("diff.css"),
        picture=step_picture.in_page(drawn),
        verdict=shown(f"{story.verdict}.", 300),
        states=[(name, shown(facts, 200)) for name, facts in (("before", story.before), ("after", story.after))],
        said=[shown(sentences(text), 600) for text in said if text],
        tables=list(_tables(story)),
        same=story.same,
        notes=[shown(note, 600) for note in story.notes],
    )


def _tables(story: DiffStory) -> Iterator[dict[str, Any]]:
    for kind, changes in story.changes.items():
        rows = [_row(change) for change in changes[:MAX_ROWS]]
        yield {"kind": kind.value, "title": TITLES[kind], "rows": rows, "more": len(changes) - len(rows)}


def _row(change: ChangeText) -> dict[str, str]:
    texts = {"what": change.what, "where": change.where, "numbers": change.numbers}
    return {"sign": change.sign, **{name: shown(text, 240) for name, text in texts.items()}}
