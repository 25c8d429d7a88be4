"""Render an Analysis as one self-contained HTML file: verdict, timeline, findings.

Names in a trace are untrusted input. Three measures keep them text: jinja2 escapes every value, the script inserts
names only as text, and the file's Content-Security-Policy allows only its own scripts and styles, by hash.
"""

from __future__ import annotations

import functools
import ntpath
import posixpath
from pathlib import PurePath
from typing import Any

import msgspec
from markupsafe import Markup

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding, Severity
from syncscan.model.fix import Suggested
from syncscan.model.habit import Basis
from syncscan.model.step import StepSummary
from syncscan.model.trace import Vendor
from syncscan.report import (
    annotated,
    before_after_svg,
    causes,
    compile_breaks,
    habits,
    host,
    kernels,
    program_run,
    races,
    source,
    states,
    suggested_fix,
)
from syncscan.report.assets import asset, template
from syncscan.report.before_after import BeforeAfter, before_after
from syncscan.report.habits import HabitText
from syncscan.report.phrases import USES, certainty, chain, place, projected, sentences, waited
from syncscan.report.remedies import RemedyText
from syncscan.report.shown_names import shown
from syncscan.report.story import FindingText, Story, story_of
from syncscan.report.tiles import bars, falls, key, sampled, tiles, widest_us
from syncscan.report.timeline import timeline
from syncscan.report.timeline_projected import removed_in
from syncscan.report.units import duration, times
from syncscan.version import __version__

MAX_FINDINGS = 300
MAX_OCCURRENCES = 6
MAX_PHASES = 50
HUES = 6
"""Phases of the run with a color of their own."""
MAX_PARTS = 12
"""Things between launches in a habit's card."""
_SCRIPTS = (
    "columns.js",
    "view.js",
    "paint.js",
    "margins.js",
    "controls.js",
    "splits.js",
    "replayed.js",
    "timeline.js",
    "list.js",
    "drawer.js",
    "keys.js",
    "icicle.js",
    "in_view.js",
    "before_after.js",
    "page.js",
)
_RANK = {Severity.HIGH: 3, Severity.MEDIUM: 2, Severity.LOW: 1, Severity.INFO: 0}


class _Page(msgspec.Struct, frozen=True, eq=False):
    analysis: Analysis
    origin: int
    """The timeline's zero, ns on the trace's clock."""
    projected: dict[tuple[tuple[int, ...], str], int]
    """Index of the projected step without exactly these findings, by their numbers, and launched so; see `_indices`."""
    numbers: frozenset[int]
    """Numbers of the findings on the page."""
    story: Story
    unplaced: dict[str, str]
    """Why the timeline doesn't show a habit of samples, by its id."""


def render(analysis: Analysis) -> str:
    """Return the report as one HTML document, which encodes as UTF-8 whatever the trace's names hold."""
    story, drawn = story_of(analysis), timeline(analysis)
    findings = story.findings[:MAX_FINDINGS]
    numbers = frozenset(entry.number for entry in findings)
    cards = {entry.id: number for number, entry in enumerate(story.habits)}
    page = _Page(analysis, drawn.pop("origin"), _indices(drawn), numbers, story, drawn.pop("unplaced"))
    icicle, strip = host.picture(analysis.host_time), before_after(analysis, story)
    fallen = falls(strip, widest_us(analysis)) if strip else []
    shapes = [bar for bar in bars(analysis) if not (bar.projected and fallen)]
    fallen += sampled(analysis, story, widest_us(analysis)) if shapes else []
    return template("report.html.j2").render(
        version=__version__,
        file=shown(ntpath.basename(posixpath.basename(analysis.trace.info.path)), 120) or "trace",
        facts=_facts(analysis),
        verdict=f"{story.verdict}.",
        reason=shown(story.opening, 1200),
        tiles=tiles(analysis),
        run=_run(analysis, story),
        bars=shapes,
        falls=fallen,
        key=[*key(shapes), *([("hatch", "projected, with its range")] if fallen else [])],
        strip=_strip(strip) if strip else None,
        steps_found=shown(story.steps_found, 600),
        hidden=story.hidden,
        phases=story.phases[:MAX_PHASES],
        states_title=states.TITLE,
        states=_states(page),
        todo=_todo(story, page, cards),
        races_title=races.TITLE,
        races=[
            {
                "lines": shown(races.lines(race), 200),
                "title": race.title,
                "why": race.why,
                "fix": race.fix,
            }
            for race in story.races[:MAX_FINDINGS]
        ],
        habits_title=habits.TITLE,
        habits=[_habit(entry, page) for entry in story.habits],
        host=_host(story, icicle is not None),
        kernels=_kernels(story),
        compiled=_compiled(story),
        annotated=annotated.files(findings) if story.costed and not analysis.step.waits_withheld else [],
        timeline_note=_timeline_note(drawn),
        in_view_by=f"{'Python function, ' if drawn['python'] else ''}scope, op and call",
        findings=[_finding(entry, page) for entry in findings],
        findings_note=_findings_note(story),
        timed=story.timed,
        costed=story.costed,
        sorts=_SORTS if story.costed else (("often", "how often"),),
        projected=[step["name"] for step in drawn["without"]],
        no_findings=_nothing_found(analysis, story),
        warnings=[shown(w, 600) for w in story.warnings],
        style=asset("report.css") + asset("before_after.css") + asset("step_picture.css"),
        script=_script(),
        data=_json(
            {
                **drawn,
                "habits": {name: cards[id] for name, id in drawn["habits"].items() if id in cards},
                "host": icicle,
                "labels": {entry.number: _label(entry) for entry in findings},
            }
        ),
    )


# the page's parts


def _strip(drawn: BeforeAfter) -> dict[str, Any]:
    fixes = [
        {"title": shown(fix.title, 120), "where": shown(fix.where, 200), "saves": shown(fix.saves, 80)}
        for fix in drawn.fixes
    ]
    return {
        "plot": before_after_svg.plot(drawn),
        "defs": Markup(before_after_svg.DEFS),
        "spoken": before_after_svg.spoken(drawn),
        "key": before_after_svg.key(drawn),
        "fixes": fixes,
        "says": drawn.shown.sentence,
        "caption": drawn.caption,
    }


def _facts(analysis: Analysis) -> list[str]:
    info, step = analysis.trace.info, analysis.step
    devices = [shown(d, 60) for d in dict.fromkeys(info.devices)]
    rank = f"rank {info.rank}" + (f" of {info.world_size}" if info.world_size else "")
    facts = [
        " + ".join(devices[:2]) or ("" if info.vendor is Vendor.NONE else info.vendor.value),
        rank if info.rank is not None else "",
        f"{step.count} step{'s' * (step.count != 1)}" if analysis.trace.steps else "no steps marked",
    ]
    if not info.capture.pretended:
        facts += [f"{info.events:,} event{'s' * (info.events != 1)}", _size(info.size_bytes)]
    return [f for f in facts if f]


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB" if size else ""


def _indices(drawn: dict[str, Any]) -> dict[tuple[tuple[int, ...], str], int]:
    """Return the index of the projected step without exactly these findings and launched so; empty: only without."""
    numbered = reversed(list(enumerate(drawn["without"])))
    return {(tuple(step["findings"]), way): number for number, step in numbered for way in step["launches"]}


def _states(page: _Page) -> list[tuple[states.StateText, int | None]]:
    """Return the rows of the table of states, each with the index of its projected step; -1 for the step as it is."""
    of = page.analysis.states
    if of is None:
        return []
    drawn = [page.projected.get((removed_in(page.analysis, state), state.launches)) for state in of.each]
    return list(zip(states.rows(of), [-1 if page.projected else None, *drawn], strict=True))


def _todo(story: Story, page: _Page, cards: dict[str, int]) -> dict[str, Any]:
    """Return what to change; each entry links to its findings or its habit."""
    return {
        "title": story.to_do,
        "nothing": shown(story.nothing, 600),
        "then": shown(sentences(story.then, story.stop), 600),
        "remedies": [_remedy(entry, cards.get(entry.habit), page) for entry in story.remedies],
    }


def _remedy(remedy: RemedyText, habit: int | None, page: _Page) -> dict[str, Any]:
    members = [m for m in remedy.members if m.number in page.numbers]
    return {
        "without": _without(remedy, page),
        "saves": remedy.saves,
        "doubts": remedy.doubt.split("; "),
        "projected": remedy.basis is Basis.REPLAY,
        "cause": causes.title_of([page.analysis.findings[m.number] for m in members]),
        "syncs": [(m.number, shown(m.title, 160), shown(m.where, 200)) for m in members],
        "habit": habit,
        "title": shown(remedy.what, 160),
        "where": shown(remedy.where, 200),
        "fix": shown(remedy.fix, 900),
    }


def _without(remedy: RemedyText, page: _Page) -> int | None:
    """Return the index of the step that a remedy leads to, or else of the one without its syncs."""
    removed, states_of = tuple(sorted(m.number for m in remedy.members)), page.analysis.states
    if remedy.launches and states_of and states_of.pair:
        together = page.projected.get((removed_in(page.analysis, states_of.pair), remedy.launches))
        return page.projected.get((removed, "")) if together is None else together
    return page.projected.get((removed, ""))


def _habit(habit: HabitText, page: _Page) -> dict[str, Any]:
    return {
        "severity": habit.severity.value,
        "title": shown(habit.title, 160),
        "where": shown(habit.where, 120),
        "saves": habit.saves,
        "doubt": habit.doubt,
        "projected": habit.basis is Basis.REPLAY,
        "id": habit.id,
        "confidence": habit.confidence,
        "evidence": shown(habit.evidence, 900),
        "unplaced": page.unplaced.get(habit.id, ""),
        "splits": [
            (shown(s.text, 200), s.finding if s.finding in page.numbers else None) for s in habit.splits[:MAX_PARTS]
        ],
        "more": len(habit.splits) > MAX_PARTS,
        "why": shown(habit.why, 1500),
        "fix": shown(habit.fix, 1500),
        "when_fine": shown(habit.when_fine, 1500),
    }


def _host(story: Story, drawn: bool) -> dict[str, Any]:
    return {
        "title": host.TITLE,
        "leads": story.host_leads,
        "sentence": shown(story.host_sentence, 600),
        "drawn": drawn,
        "tables": [_of_host(table) for table in story.host_tables],
        "notes": story.host_notes,
    }


def _kernels(story: Story) -> dict[str, Any]:
    return {
        "title": kernels.TITLE,
        "sentence": shown(story.kernels, 600),
        "tables": [_of_host(story.kernel_table)] if story.kernel_table else [],
        "notes": [],
    }


def _compiled(story: Story) -> dict[str, Any]:
    return {
        "title": story.compile_table.title if story.compile_table else compile_breaks.TITLE,
        "sentence": shown(story.compiled, 600),
        "tables": [_of_host(story.compile_table)] if story.compile_table else [],
        "notes": [shown(note, 600) for note in story.compile_notes],
    }


def _run(analysis: Analysis, story: Story) -> dict[str, Any]:
    """Return the run as a strip, or a dry run's parts outside of the steps; a phase's color is by its index."""
    cells = program_run.strip(analysis)
    names = [shown(phase.name, 60) for phase in analysis.run.phases] if analysis.run else []
    labels = {-1: "the steps", -2: "the capture's own work", **dict(enumerate(names))}
    at, drawn = 0.0, []
    for cell in cells:
        drawn.append({"look": _hue(cell.phase), "x": round(at, 2), "width": cell.width, "label": labels[cell.phase]})
        at += cell.width
    there = sorted({cell.phase for cell in cells}, key=lambda phase: (phase < -1, phase))
    return {
        "cells": drawn,
        "spoken": "The run, from its first step to its last: " + ", ".join(labels[phase] for phase in there),
        "key": [(_hue(phase), labels[phase]) for phase in there],
        "rows": [
            {
                "name": shown(row.name, 60),
                "where": shown(row.where, 120),
                "verdict": shown(row.verdict, 300),
                "waits": [shown(wait, 300) for wait in row.waits],
            }
            for row in story.run
        ],
    }


def _hue(phase: int) -> str:
    if phase < 0:
        return "work" if phase == -1 else "capture"
    return f"own{phase}" if phase < HUES else "own-rest"


def _of_host(table: host.TextTable) -> dict[str, Any]:
    return {
        "title": table.title,
        "head": [(name, number >= table.words) for number, name in enumerate(table.head)],
        "rows": [[(shown(text, 200), _look(table, number)) for number, text in enumerate(row)] for row in table.rows],
        "more": table.more,
    }


def _look(table: host.TextTable, column: int) -> str:
    return "place" if column < table.code else "" if column < table.words else "num"


def _timeline_note(drawn: dict[str, Any]) -> str:
    if not drawn["length"]:
        return "This trace holds nothing to draw."
    if drawn["whole"]:
        return f"All {drawn['slices']:,} slices."
    return (
        f"{drawn['slices']:,} of {drawn['of']:,} slices: those around the findings. "
        "Elsewhere the lanes show how busy they were."
    )


def _findings_note(story: Story) -> str:
    total = len(story.findings)
    if not total:
        return ""
    points = sum(finding.of.count for finding in story.findings)
    cut = f" The first {MAX_FINDINGS} are shown." if total > MAX_FINDINGS else ""
    counted = f"{total} finding{'s' * (total != 1)}, {points:,} sync point{'s' * (points != 1)}"
    return f"{counted}.{' Times are means per step.' if story.costed else ''}{cut}"


_SORTS = (
    ("", "what it saves"),
    ("wait", "wait"),
    ("idle", "idle after"),
    ("often", "how often"),
    ("severity", "severity"),
)
"""Sort orders of findings besides the default: an attribute, and its label."""


def _nothing_found(analysis: Analysis, story: Story) -> str:
    if analysis.findings:
        return story.hidden
    if not len(analysis.trace.device_rows):
        return "No sync point was found. The trace contains no device work: was it recorded without the device?"
    return "No sync point was found: the host never waits for the device in this trace."


def _finding(finding: FindingText, page: _Page) -> dict[str, Any]:
    f = finding.of
    return {
        "number": finding.number,
        "severity": f.severity.value,
        "rank": _RANK[f.severity] * 1000 - finding.number,
        "title": shown(finding.title, 200),
        "place": shown(finding.where, 200),
        "cause": f.cause.value,
        "phase": f.phase.value,
        "owner": shown(f.owner, 40),
        "scope": shown(" > ".join(f.scope), 120) or "(no scope)",
        "without": page.projected.get(((finding.number,), "")),
        "per_step": f.per_step,
        "wait_us": f.wait_us,
        "bubble_us": f.bubble_us,
        "cost": _cost(finding, page.story),
        "saves": (f"{finding.saves} ({finding.share})" if finding.share else finding.saves)
        if page.story.costed
        else "",
        "numbers": _numbers(finding) if page.story.costed else [],
        "projection": shown(projected(f, page.analysis.step), 900),
        "source": _source(f.excerpt) if f.excerpt else None,
        "suggested": _suggested(f.suggested) if f.suggested else None,
        "why": shown(f.why, 1500),
        "fix": shown(f.fix, 1500),
        "when_fine": shown(f.when_fine, 1500),
        "evidence": _evidence(f, page.analysis.step),
        "count": f.count,
        "occurrences": _occurrences(f, page) if page.story.timed else [],
    }


def _cost(finding: FindingText, story: Story) -> str:
    often = ", ".join(finding.circumstances) if not story.timed else times(finding.of.per_step)
    return f"waits {finding.waits}, idle after {finding.idle}, {often}" if story.costed else often


def _source(excerpt: Excerpt) -> dict[str, Any]:
    digits = len(str(excerpt.first + len(excerpt.lines) - 1))
    return {
        "place": shown(f"{PurePath(excerpt.path).name}:{','.join(map(str, excerpt.marked))}", 120),
        "lines": [(f"{x.number:{digits}}", x.text, x.flagged) for x in source.lines(excerpt)],
        "newer": source.NEWER if excerpt.newer else "",
    }


def _suggested(change: Suggested) -> dict[str, Any]:
    lines = suggested_fix.diff_lines(change)
    return {"caption": shown(suggested_fix.caption(change), 400), "lines": [(x, x.startswith("+")) for x in lines]}


def _numbers(finding: FindingText) -> list[tuple[str, str, str]]:
    """Return the four numbers of a finding, means per step, each with its label and its style if projected."""
    moved = finding.of.moved_us
    return [
        ("wait", finding.waits, ""),
        ("idle after", finding.idle, ""),
        ("moved", "–" if moved is None else duration(moved), "projected-text"),
        ("recoverable", finding.saves, "projected-text"),
    ]


def _evidence(f: Finding, step: StepSummary) -> list[tuple[str, str]]:
    rows = [
        ("rule", f"{f.rule} · {f.id}"),
        ("line", f"{place(f.source)}, {certainty(f.source)}" if f.source else ""),
        ("waits in", f"{place(f.called_from)} {f.called_from.function}" if f.called_from else ""),
        ("chain", " › ".join(chain(f))),
        ("scope", " › ".join(f.scope)),
        ("module", " › ".join(f.module)),
        ("thread", f.thread),
        ("confidence", f.confidence.value),
        ("safe to remove", USES[f.value]),
        ("measured", _measured_text(f, step)),
    ]
    return [(label, shown(value)) for label, value in rows if value]


def _measured_text(f: Finding, step: StepSummary) -> str:
    wait, idle = waited(f.wait_us, step), waited(f.bubble_us, step)
    return f"{wait} waiting, {idle} idle after, {times(f.per_step)}"


def _occurrences(f: Finding, page: _Page) -> list[dict[str, Any]]:
    costly = sorted(f.occurrences, key=lambda o: -(o.wait_ns + o.bubble_ns))[:MAX_OCCURRENCES]
    begins = {s.number: s.ts for s in page.analysis.trace.steps}
    return [
        {
            "step": "–" if o.where.step is None else o.where.step,
            "at": (o.ts - begins.get(-1 if o.where.step is None else o.where.step, page.origin)) / 1e3,
            "ns": o.ts - page.origin,
            "wait_us": o.wait_ns / 1e3,
            "bubble_us": o.bubble_ns / 1e3,
        }
        for o in costly
    ]


def _label(finding: FindingText) -> dict[str, str]:
    return {"title": shown(finding.title, 120), "place": shown(finding.where, 200)}


# script and data


def _json(value: Any) -> Markup:
    """Return JSON that is safe inside a script element: it can neither end the element nor begin another."""
    text = msgspec.json.encode(value).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@functools.cache
def _script() -> Markup:
    return Markup("\n").join(asset(name) for name in _SCRIPTS)
