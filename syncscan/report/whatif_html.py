"""Render a Projection as one self-contained HTML page: the step before and after, what was removed, each sync's part.

The page runs no script: its Content-Security-Policy allows none, and no style but its own, by hash. jinja2 escapes
every value.
"""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Sequence
from typing import Any

from syncscan.model.analysis import Analysis
from syncscan.model.projection import Pipeline, Projection
from syncscan.report import step_picture
from syncscan.report.assets import asset, template
from syncscan.report.remedies import SHOWN, title
from syncscan.report.shown_names import shown
from syncscan.report.story import FindingText, story_of
from syncscan.report.units import duration, range_of, within
from syncscan.report.whatif import headline, streams
from syncscan.version import __version__

MAX_FINDINGS = 100
"""Findings on the page; JSON has all."""


def render(analysis: Analysis, projection: Projection, pipelines: Sequence[Pipeline] = ()) -> str:
    """Return the projection as one HTML document.

    Args:
        projection: the projection of the findings that were to be removed.
    """
    story, removed = story_of(analysis), frozenset(projection.removed)
    verdict, *below = [text.plain for text in headline(analysis, projection)]
    listed = sorted(story.findings, key=lambda finding: finding.id not in removed)
    return template("whatif.html.j2").render(
        version=__version__,
        style=asset("page.css") + step_picture.style() + asset("whatif.css"),
        trace=shown(ntpath.basename(posixpath.basename(analysis.trace.info.path)), 200),
        verdict=shown(verdict, 400),
        said=[shown(text, 600) for text in (*below, *(text.plain for text in streams(analysis, pipelines)))],
        picture=step_picture.in_page(step_picture.projected(analysis, projection)),
        tiles=_tiles(projection),
        rows=[_row(finding, finding.id in removed) for finding in listed[:MAX_FINDINGS]],
        more=max(0, len(listed) - MAX_FINDINGS),
        advice=[shown(text, 600) for text in (story.nothing, story.then, story.stop) if text],
        changes_title=title(story.remedies),
        changes=[(entry.saves, shown(entry.doubt, 300), shown(entry.name, 300)) for entry in story.remedies[:SHOWN]],
        notes=[shown(note, 600) for note in projection.notes],
    )


def _tiles(p: Projection) -> list[tuple[str, str, str]]:
    """Return the projection's figures: name, value and range."""
    low, high = p.range_us
    saves = within(p.saving_us, (p.baseline_us - high, p.baseline_us - low))
    return [
        ("step now", duration(p.baseline_us), ""),
        ("projected", within(p.predicted_us, p.range_us), range_of(p.range_us)),
        ("saves", saves, f"{p.speedup:.2f} times as fast"),
        ("device work", duration(p.device_limit_us), "no step is shorter"),
        ("host work", duration(p.host_limit_us), "no step is shorter"),
    ]


def _row(finding: FindingText, removed: bool) -> dict[str, Any]:
    return {
        "removed": removed,
        "title": shown(finding.title, 200),
        "where": shown(finding.where, 240),
        "id": shown(finding.id, 120),
        "saves": f"{finding.saves} ({finding.share})" if finding.share else finding.saves,
        "doubt": finding.doubt,
        "waits": finding.waits,
    }
