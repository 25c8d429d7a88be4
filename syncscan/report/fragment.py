"""Render an Analysis as an HTML fragment for a notebook: first screen, picture of the step, and the rest folded."""

from __future__ import annotations

import base64

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.report import analysis_report, page, svg
from syncscan.report.front import front_of
from syncscan.report.page import template

MAX_ROWS = 20
"""Rows of a table and entries of a list; `analysis.to_frame()` has them all."""


def render(analysis: Analysis) -> str:
    """Return the report as HTML without scripts or a page around it; text from the trace is escaped."""
    return template("fragment.html.j2").render(
        screen=page.markup(analysis_report.first_screen(front_of(analysis), verbose=True), MAX_ROWS),
        rest=page.markup(analysis_report.behind_it(analysis), MAX_ROWS),
        picture=_picture(analysis),
    )


def _picture(analysis: Analysis) -> dict[str, str] | None:
    """Return the step before and after its fixes as an image, whose style the notebook's can't reach; or None."""
    try:
        drawn = svg.picture(analysis)
    except UsageError:
        return None
    return {"svg": base64.b64encode(drawn.svg.encode()).decode("ascii"), "alt": drawn.alt}
