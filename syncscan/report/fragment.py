"""Render an Analysis as an HTML fragment for a notebook: verdict, table, and what to do about each finding."""

from __future__ import annotations

import base64
from pathlib import PurePath
from typing import Any

from syncscan.errors import UsageError
from syncscan.facts.phases import PhaseSummary
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.step import StepSummary
from syncscan.report import habits, host, remedies, source, svg
from syncscan.report.assets import template
from syncscan.report.habits import HabitText
from syncscan.report.phrases import certainty, chain, facts, places
from syncscan.report.remedies import RemedyText
from syncscan.report.shown_names import shown
from syncscan.report.story import FindingText, story_of
from syncscan.report.timed_steps import unprofiled
from syncscan.report.units import duration

MAX_ROWS = 20
"""Findings in the table."""
_COLORS = {Severity.HIGH: "#d33", Severity.MEDIUM: "#d80", Severity.LOW: "#39c", Severity.INFO: "#999"}
_TEXT = 600


def render(analysis: Analysis) -> str:
    """Return the report as HTML without scripts or a page around it; text from the trace is escaped."""
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
        remedies=[_remedy(entry) for entry in story.remedies[: remedies.SHOWN]],
        more_remedies=max(0, len(story.remedies) - remedies.SHOWN),
        then=shown(story.then, _TEXT),
        habits_title=habits.TITLE,
        habits=[_habit(entry) for entry in story.habits[: habits.SHOWN]],
        more_habits=max(0, len(story.habits) - habits.SHOWN),
        host_title=host.TITLE,
        host_tables=[_of_host(table) for table in story.host_tables] if story.host_leads else [],
        host_notes=story.host_notes,
        costed=story.costed,
        rows=[_row(entry, analysis.step) for entry in story.findings[:MAX_ROWS]],
        more=max(0, len(story.findings) - MAX_ROWS),
        warnings=[shown(w, _TEXT) for w in story.warnings],
        picture=_picture(analysis),
    )


def _picture(analysis: Analysis) -> dict[str, str] | None:
    """Return the step before and after its fixes as an image, whose style the notebook's can't reach; or None."""
    try:
        drawn = svg.picture(analysis)
    except UsageError:
        return None
    return {"svg": base64.b64encode(drawn.svg.encode()).decode("ascii"), "alt": drawn.alt}


def _headline(analysis: Analysis) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [shown(PurePath(info.path).name, 120), *(shown(d, 60) for d in info.devices[:1] if d)]
    steps = f"{s.count} step{'s' * (s.count != 1)}"
    if s.observed_us:
        steps = f"{steps} of {duration(s.observed_us)}" if analysis.trace.steps else duration(s.observed_us)
    parts.append(steps)
    if known := unprofiled(analysis):
        parts.append(f"{known} without the profiler")
    return " · ".join(parts)


def _phase(p: PhaseSummary) -> list[str]:
    return [p.phase.value, "" if p.batch is None else str(p.batch), str(p.count), duration(p.median_us)]


def _of_host(table: host.TextTable) -> dict[str, Any]:
    return {
        "title": table.title,
        "head": [(shown(name, 40), number >= table.words) for number, name in enumerate(table.head)],
        "rows": [
            [(shown(text, 120), number < table.code, number >= table.words) for number, text in enumerate(row)]
            for row in table.rows
        ],
        "more": table.more,
    }


def _remedy(remedy: RemedyText) -> dict[str, str]:
    return {
        "saves": remedy.saves,
        "doubt": remedy.doubt,
        "what": shown(remedy.what, 160),
        "where": shown(remedy.where, 200),
        "fix": shown(remedy.fix, _TEXT),
    }


def _habit(habit: HabitText) -> dict[str, Any]:
    facts_of = [*habits.facts(habit), ("id", habit.id)]
    return {
        "severity": habit.severity.value,
        "color": _COLORS[habit.severity],
        "saves": f"{habit.saves}, {habit.doubt}" if habit.doubt else habit.saves,
        "title": shown(habit.title, 160),
        "where": shown(habit.where, 120),
        "facts": [(name, shown(text, _TEXT)) for name, text in facts_of if text],
    }


def _row(finding: FindingText, step: StepSummary) -> dict[str, Any]:
    f = finding.of
    return {
        "severity": finding.severity.value,
        "color": _COLORS[finding.severity],
        "saves": finding.saves,
        "waits": finding.waits,
        "idle": finding.idle,
        "title": shown(finding.title, 120),
        "what": shown(finding.what, 120),
        "place": shown(places(f), 120),
        "circumstances": ", ".join(finding.circumstances),
        "facts": [(name, shown(text, _TEXT)) for name, text in _facts(f, step) if text],
        "source": source.numbered(f.excerpt) if f.excerpt else [],
        "newer": source.NEWER if f.excerpt and f.excerpt.newer else "",
    }


def _facts(f: Finding, step: StepSummary) -> list[tuple[str, str]]:
    line = f.source
    return [
        *facts(f, step),
        ("line", certainty(line) if line else ""),
        ("scope", " > ".join(f.scope)),
        ("chain", " > ".join(chain(f))),
        ("id", f.id),
    ]
