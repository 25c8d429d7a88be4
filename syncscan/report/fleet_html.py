"""Render a Fleet as one self-contained HTML page: who delays the job, its ranks and steps, what to change.

The page runs no script: its Content-Security-Policy allows none, and no style but its own, by hash. jinja2 escapes
every value.
"""

from __future__ import annotations

from typing import Any

from syncscan.model.fleet import Fleet, LateCause
from syncscan.report.assets import asset, template
from syncscan.report.fleet_picture import WIDTH, FleetPicture, picture_of
from syncscan.report.fleet_story import FIGURES, SHORT_CAUSES, FleetStory, JobFindingText, story_of
from syncscan.report.shown_names import shown
from syncscan.version import __version__

MAX_FINDINGS = 100
"""Findings on the page; JSON has all."""
MAX_UNREAD = 100
MAX_LATE = 200
"""Steps whose latest rank is described in words."""
LABEL, LABEL_IN_RUN = 64, 96
"""Width of the labels left of the drawing: for single ranks, and for ranges of ranks."""
_HEIGHTS = ((8, 34), (24, 22))
"""Row height by the number of rows up to which it applies, in drawing units."""
LOW = 13
"""Row height for more rows."""


def render(fleet: Fleet) -> str:
    """Return the report of a job as one HTML document.

    Returns:
        Text that encodes as UTF-8, whatever the traces' names hold.
    """
    story, drawn = story_of(fleet), picture_of(fleet)
    return template("fleet.html.j2").render(
        version=__version__,
        style=asset("page.css") + asset("fleet.css"),
        facts=[shown(fact, 120) for fact in story.headline],
        verdict=shown(f"{story.verdict}.", 300),
        said=[shown(text, 900) for text in (story.reason, story.summary) if text],
        missing=story.missing,
        picture=_picture(drawn) if drawn else None,
        causes=[(cause.value, SHORT_CAUSES[cause]) for cause in LateCause],
        late=story.late[:MAX_LATE],
        late_more=max(0, len(story.late) - MAX_LATE),
        then=[shown(text, 400) for text in story.then],
        wrong=[shown(text, 400) for text in story.wrong[:MAX_FINDINGS]],
        findings=[_finding(finding) for finding in story.findings[:MAX_FINDINGS]],
        more=max(0, len(story.findings) - MAX_FINDINGS),
        figures=FIGURES,
        ranks=_ranks(story),
        quantiles=story.quantiles,
        unread=[(shown(path, 300), shown(reason, 400)) for path, reason in story.unread[:MAX_UNREAD]],
        unread_more=max(0, len(story.unread) - MAX_UNREAD),
        notes=[shown(note, 600) for note in story.notes],
    )


def _finding(finding: JobFindingText) -> dict[str, Any]:
    first = finding.of.first
    return {
        "title": shown(first.title, 200),
        "where": shown(finding.where, 240),
        "rule": shown(f"{first.rule} · {first.id}", 120),
        "saves": finding.saves,
        "share": finding.share,
        "doubt": finding.doubt,
        "on": finding.on,
        "numbers": f"waits {finding.waits}, idle after {finding.idle}, {finding.often}",
        "wrong": finding.wrong,
        "fix": shown(first.fix, 900),
        "intended": first.intended,
    }


def _ranks(story: FleetStory) -> list[dict[str, Any]]:
    return [
        {
            "rank": rank.rank,
            "figures": rank.figures,
            "why": rank.why,
            "path": shown(rank.path, 240),
            "numbered_from": rank.numbered_from,
        }
        for rank in story.ranks
    ]


def _picture(drawn: FleetPicture) -> dict[str, Any]:
    """Return rows with their heights; the critical path as one line from row to row."""
    height = next((tall for most, tall in _HEIGHTS if len(drawn.rows) <= most), LOW)
    label = LABEL if all(row.alone for row in drawn.rows) else LABEL_IN_RUN
    legs = [
        {"x": leg.x, "end": leg.end, "y": (leg.row + 0.5) * height, "said": shown(leg.said, 200)} for leg in drawn.legs
    ]
    return {
        "rows": drawn.rows,
        "row": height,
        "label": label,
        "width": WIDTH,
        "height": height * len(drawn.rows),
        "legs": legs,
        "path": " ".join(
            f"{'M' if number == 0 else 'L'}{leg['x']} {leg['y']} L{leg['end']} {leg['y']}"
            for number, leg in enumerate(legs)
        ),
        "steps": drawn.steps,
        "note": drawn.note,
    }
