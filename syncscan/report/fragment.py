"""From an Analysis to an HTML fragment for a notebook's output: verdict, table, and what to do about each finding."""

from __future__ import annotations

from functools import cache
from pathlib import PurePath
from typing import Any

import jinja2

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Phase, Severity
from syncscan.model.phases import PhaseSummary, phases_of
from syncscan.model.step import StepSummary
from syncscan.report import host
from syncscan.report.names import shown
from syncscan.report.phrases import (
    USES,
    VERDICTS,
    certainty,
    chain,
    first_screen,
    measured,
    places,
    projected,
    steps_found,
    waited,
    what,
)
from syncscan.report.units import duration, times

MAX_ROWS = 20
"""Findings in the table."""
_COLORS = {Severity.HIGH: "#d33", Severity.MEDIUM: "#d80", Severity.LOW: "#39c", Severity.INFO: "#999"}
_TEXT = 600


def render(analysis: Analysis) -> str:
    """The report as HTML without scripts and without a page around it; text from the trace is escaped."""
    s = analysis.step
    return _template().render(
        headline=_headline(analysis),
        verdict=VERDICTS[s.bound],
        steps_found=shown(steps_found(analysis), _TEXT),
        phases=[_phase(p) for p in phases_of(analysis.trace)[:MAX_ROWS]],
        reason=shown(first_screen(analysis), 2 * _TEXT),
        advice=[shown(a, _TEXT) for a in s.advice],
        host_title=host.TITLE,
        host_tables=[_of_host(table) for table in host.tables(analysis.host_time)] if host.leads(analysis) else [],
        host_notes=host.notes(analysis.host_time),
        rows=[_row(f, s) for f in analysis.findings[:MAX_ROWS]],
        more=max(0, len(analysis.findings) - MAX_ROWS),
        warnings=[shown(w, _TEXT) for w in analysis.warnings],
    )


@cache
def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("syncscan.report")
    env = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return env.get_template("fragment.html.j2")


def _headline(analysis: Analysis) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [shown(PurePath(info.path).name, 120), *(shown(d, 60) for d in info.devices[:1])]
    steps = f"{s.count} step{'s' * (s.count != 1)} of {duration(s.observed_us)}"
    parts.append(steps if analysis.trace.steps else duration(s.observed_us))
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


def _row(f: Finding, step: StepSummary) -> dict[str, Any]:
    often = [f.where.phase.value] if f.where.phase is Phase.BACKWARD else []
    often += [times(f.per_step)] if abs(f.per_step - 1) >= 0.005 else []
    return {
        "severity": f.severity.value,
        "color": _COLORS[f.severity],
        "saves": duration(f.gain.recoverable_us) if f.gain else "–",
        "waits": waited(f.wait_us, step),
        "idle": waited(f.bubble_us, step),
        "title": shown(f.diagnosis.title, 120),
        "what": shown(what(f), 120),
        "place": shown(places(f.where), 120),
        "often": ", ".join(often),
        "facts": [(name, shown(text, _TEXT)) for name, text in _facts(f, step) if text],
    }


def _facts(f: Finding, step: StepSummary) -> list[tuple[str, str]]:
    d, source = f.diagnosis, f.where.source
    return [
        ("why", d.why),
        ("instead", d.fix),
        ("safe to remove", USES[f.where.use]),
        ("fine", d.when_fine),
        ("line", certainty(source) if source else ""),
        ("scope", " > ".join(f.where.scope)),
        ("chain", " > ".join(chain(f))),
        ("measured", measured(f, step)),
        ("projected", projected(f, step)),
        ("id", f.id),
    ]
