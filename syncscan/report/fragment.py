"""From an Analysis to an HTML fragment for a notebook's output: verdict, table, and what to do about each finding."""

from __future__ import annotations

import base64
from pathlib import PurePath
from typing import Any

from syncscan.errors import UsageError
from syncscan.facts.phases import PhaseSummary
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.step import StepSummary
from syncscan.report import habits, host, picture, remedies, source
from syncscan.report.assets import template
from syncscan.report.habits import ToldHabit
from syncscan.report.names import shown
from syncscan.report.phrases import certainty, chain, facts, places
from syncscan.report.remedies import ToldRemedy
from syncscan.report.story import ToldFinding, story_of
from syncscan.report.units import duration

MAX_ROWS = 20
"""Findings in the table."""
_COLORS = {Severity.HIGH: "#d33", Severity.MEDIUM: "#d80", Severity.LOW: "#39c", Severity.INFO: "#999"}
_TEXT = 600


def render(analysis: Analysis) -> str:
    """The report as HTML without scripts and without a page around it; text from the trace is escaped."""
    story = story_of(analysis)
    return template("fragment.html.j2").render(
        headline=_headline(analysis),
        verdict=story.verdict,
        steps_found=shown(story.steps_found, _TEXT),
        hidden=story.hidden,
        phases=[_phase(p) for p in story.phases[:MAX_ROWS]],
        reason=shown(story.opening, 2 * _TEXT),
        nothing=shown(story.nothing, _TEXT),
        remedies_title=story.to_do,
        remedies=[_remedy(told) for told in story.remedies[: remedies.SHOWN]],
        more_remedies=max(0, len(story.remedies) - remedies.SHOWN),
        then=shown(story.then, _TEXT),
        habits_title=habits.TITLE,
        habits=[_habit(told) for told in story.habits[: habits.SHOWN]],
        more_habits=max(0, len(story.habits) - habits.SHOWN),
        host_title=host.TITLE,
        host_tables=[_of_host(table) for table in story.host_tables] if story.host_leads else [],
        host_notes=story.host_notes,
        costed=story.costed,
        rows=[_row(told, analysis.step) for told in story.findings[:MAX_ROWS]],
        more=max(0, len(story.findings) - MAX_ROWS),
        warnings=[shown(w, _TEXT) for w in story.warnings],
        picture=_timeline(analysis),
    )


def _timeline(analysis: Analysis) -> dict[str, str] | None:
    """The costliest step, for notebooks that are read where no script runs; None where nothing can draw it."""
    if not picture.available():
        return None
    try:
        drawn = picture.render(analysis, "timeline")
    except UsageError:
        return None
    return {"png": base64.b64encode(drawn.png).decode("ascii"), "alt": drawn.alt}


def _headline(analysis: Analysis) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [shown(PurePath(info.path).name, 120), *(shown(d, 60) for d in info.devices[:1] if d)]
    steps = f"{s.count} step{'s' * (s.count != 1)}"
    if s.observed_us:
        steps = f"{steps} of {duration(s.observed_us)}" if analysis.trace.steps else duration(s.observed_us)
    parts.append(steps)
    if s.unprofiled_us:
        parts.append(f"{duration(s.unprofiled_us)} without the profiler")
    return " · ".join(parts)


def _phase(p: PhaseSummary) -> list[str]:
    return [p.phase.value, "" if p.batch is None else str(p.batch), str(p.count), duration(p.median_us)]


def _of_host(table: host.Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "head": [(shown(name, 40), number >= table.words) for number, name in enumerate(table.head)],
        "rows": [
            [(shown(text, 120), number < table.code, number >= table.words) for number, text in enumerate(row)]
            for row in table.rows
        ],
        "more": table.more,
    }


def _remedy(told: ToldRemedy) -> dict[str, str]:
    return {
        "saves": told.saves,
        "doubt": told.doubt,
        "what": shown(told.what, 160),
        "where": shown(told.where, 200),
        "fix": shown(told.fix, _TEXT),
    }


def _habit(told: ToldHabit) -> dict[str, Any]:
    facts_of = [*habits.facts(told), ("id", told.id)]
    return {
        "severity": told.severity.value,
        "color": _COLORS[told.severity],
        "saves": f"{told.saves}, {told.doubt}" if told.doubt else told.saves,
        "title": shown(told.title, 160),
        "where": shown(told.where, 120),
        "facts": [(name, shown(text, _TEXT)) for name, text in facts_of if text],
    }


def _row(told: ToldFinding, step: StepSummary) -> dict[str, Any]:
    f = told.of
    return {
        "severity": told.severity.value,
        "color": _COLORS[told.severity],
        "saves": told.saves,
        "waits": told.waits,
        "idle": told.idle,
        "title": shown(told.title, 120),
        "what": shown(told.what, 120),
        "place": shown(places(f.where), 120),
        "circumstances": ", ".join(told.circumstances),
        "facts": [(name, shown(text, _TEXT)) for name, text in _facts(f, step) if text],
        "source": source.numbered(f.excerpt) if f.excerpt else [],
        "newer": source.NEWER if f.excerpt and f.excerpt.newer else "",
    }


def _facts(f: Finding, step: StepSummary) -> list[tuple[str, str]]:
    line = f.where.source
    return [
        *facts(f, step),
        ("line", certainty(line) if line else ""),
        ("scope", " > ".join(f.where.scope)),
        ("chain", " > ".join(chain(f))),
        ("id", f.id),
    ]
