"""Render an Analysis as one self-contained HTML file: the first screen, and tabs below it.

A tab is a document of blocks; timeline and findings are drawn by the page's script, from data and from cards. Names in
a trace are untrusted input. Three measures keep them text: jinja2 escapes every value, the script inserts names only as
text, and the file's Content-Security-Policy allows only its own scripts and styles, by hash.
"""

from __future__ import annotations

import functools
import ntpath
import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Severity
from syncscan.model.habit import Basis
from syncscan.model.projection import Remedy
from syncscan.model.step import Bound
from syncscan.report import host, step_picture, svg, tabs
from syncscan.report.analysis_report import first_screen
from syncscan.report.blocks import Block, Grid, GridColumn, Span, Stacked
from syncscan.report.front import Front, front_of, input_share
from syncscan.report.front_changes import LEAST, ListedChange
from syncscan.report.page import asset, markup, template
from syncscan.report.phrases import real, replayed
from syncscan.report.printable import shown
from syncscan.report.step_picture import StepPicture
from syncscan.report.story import FindingText, HabitText, finding_texts, habit_texts, is_costed
from syncscan.report.timeline import timeline
from syncscan.report.units import duration, times, within
from syncscan.version import __version__

MAX_FINDINGS = 300
_SCRIPTS = (
    "columns.js",
    "view.js",
    "paint.js",
    "ruler_and_steps.js",
    "controls.js",
    "splits.js",
    "replayed.js",
    "timeline.js",
    "list.js",
    "drawer.js",
    "keys.js",
    "icicle.js",
    "in_view.js",
    "step_picture.js",
    "tabs.js",
    "page.js",
)
_RANK = {Severity.HIGH: 3, Severity.MEDIUM: 2, Severity.LOW: 1, Severity.INFO: 0}


def render(analysis: Analysis) -> str:
    """Return the report as one HTML document, which encodes as UTF-8 whatever the trace's names hold."""
    first, lanes, costed = front_of(analysis), timeline(analysis), is_costed(analysis)
    texts, shown_habits = finding_texts(analysis), habit_texts(analysis)
    findings = texts[:MAX_FINDINGS]
    habits = {text.of.id: number for number, text in enumerate(shown_habits)}
    picture, icicle = step_picture.of(analysis, first), host.picture(analysis.host_time)
    without = _without(lanes)
    header, *screen = first_screen(first, True, [_opens(change, analysis, habits, without) for change in first.changes])
    shown_tabs = list(tabs.tabs_of(analysis, texts, bool(lanes["groups"]), icicle is not None))
    data = {
        **lanes,
        "habits": {name: habits[id] for name, id in lanes["habits"].items() if id in habits},
        "host": icicle,
        "labels": {f.number: {"title": shown(f.of.title, 120), "place": shown(f.where, 200)} for f in findings},
    }
    return template("report.html.j2").render(
        version=__version__,
        file=shown(ntpath.basename(posixpath.basename(analysis.trace.info.path)), 120) or "trace",
        header=markup([header]),
        screen=markup(screen),
        picture=markup(_beside(analysis, first, picture)),
        after=msgspec.json.encode(_toggled(analysis, first)).decode() if picture else "",
        tabs=shown_tabs,
        tree=icicle is not None,
        opened=_opened(analysis, first, [tab.id for tab in shown_tabs]),
        timeline_note=_timeline_note(lanes),
        in_view_by=f"{'Python function, ' if lanes['python'] else ''}scope, op and call",
        projected=[step["name"] for step in lanes["without"]],
        cards=[
            *(_finding(f, analysis, costed, without) for f in findings),
            *(_habit(habit, number) for number, habit in enumerate(shown_habits)),
        ],
        findings_note=_findings_note(texts, costed),
        sorts=_SORTS if costed else (("often", "how often"),),
        style=asset("report.css") + asset("step_picture.css") + asset("blocks.css"),
        script=_script(),
        data=_json(data),
    )


# the first screen


def _opens(
    change: ListedChange, analysis: Analysis, habits: dict[str, int], without: dict[tuple[int, ...], int]
) -> dict[str, Any]:
    """Return the finding or habit whose card a change opens, and the projected step without it; empty for none."""
    numbers = [n for n, f in enumerate(analysis.findings) if f.id in change.findings]
    return {
        "without": without.get(tuple(sorted(numbers)), ""),
        "finding": next((n for n in numbers if n < MAX_FINDINGS), ""),
        "habit": habits.get(change.habit, ""),
    }


def _beside(analysis: Analysis, first: Front, picture: StepPicture | None) -> Iterator[Block]:
    """Yield what stands beside the first screen's document: the step, and its numbers, each with a note."""
    if picture:
        yield svg.figure(picture, picture.title)
    if numbers := list(_numbers(analysis, first, picture)):
        yield _in_a_row(numbers)


def _in_a_row(numbers: Sequence[tuple[str, str, str, bool]]) -> Grid:
    cells = (
        Stacked((Span(value, "info" if projected else "strong"), *([Span(note, "dim")] if note else [])))
        for _, value, note, projected in numbers
    )
    return Grid(tuple(GridColumn(name) for name, *_ in numbers), (tuple(cells),))


def _numbers(analysis: Analysis, first: Front, picture: StepPicture | None) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the first screen's four numbers: each with its label, a note, and whether it is projected."""
    step = analysis.step
    if not first.step_us:
        return
    projected = [change for change in first.changes if change.gain is not None]
    if step.bound is Bound.SYNC and picture:
        members = [f for f in analysis.findings if any(f.id in change.findings for change in projected[:1])]
        yield "host waits", duration(picture.total("wait")), "in syncs, per step", False
        idle = picture.total("lost") or step.bubble_us  # gaps that are too short to be drawn add up, too
        yield "device idles", _or_none(idle, first), "after syncs, per step", False
        if len(members) == 1 and members[0].moved_us is not None:
            yield "moved", _or_none(members[0].moved_us, first), "to other syncs, projected", True
        else:
            yield "places", str(len(members) or len(real(analysis.findings))), "that wait", False
    else:
        yield "step", duration(first.step_us), first.step.partition(" ")[2].partition(" ")[2].lstrip(", "), False
        if first.busy is not None:
            yield "device busy", f"{first.busy:.0%}", duration(first.busy * first.step_us), False
        yield from _of_bound(analysis, first)
    for last in projected[:1] if step.bound is Bound.SYNC else projected[-1:]:
        saves = last.before_us - last.after_us
        range_us = last.before_us - last.after_high_us, last.before_us - last.after_low_us
        if step.bound is Bound.SYNC:
            yield "recoverable", within(saves, range_us), "by the first change, projected", True
        else:
            all_of = "after it" if len(projected) == 1 else "after all of them"
            yield all_of, last.takes, "projected", True


def _or_none(us: float, first: Front) -> str:
    return duration(us) if us >= LEAST * first.step_us else "none"


def _of_bound(analysis: Analysis, first: Front) -> Iterator[tuple[str, str, str, bool]]:
    step, counted = analysis.step, analysis.host_time.counted
    if step.bound is Bound.INPUT and step.input_us:
        yield "waits for input", duration(input_share(analysis) * first.step_us), "per step", False
    elif step.bound is Bound.COMMUNICATION:
        yield "collectives", duration(step.communication_us), "nothing beside them", False
    elif counted:
        yield "launches", f"{counted.launches_per_step:,.0f}", "per step", False


_After = dict[int, tuple[float, float, float, str]]
"""Bits of the changes that are made → the step's time, both ends of its range, and the time in words."""


def _toggled(analysis: Analysis, first: Front) -> _After:
    """Return the step after each set of changes; empty for a single change, or where no replay can take one out."""
    remedies = [analysis.remedies[c.remedy] for c in first.changes if c.remedy is not None and c.gain is not None]
    if len(remedies) < max(2, len(first.changes)) or any(remedy.basis is not Basis.REPLAY for remedy in remedies):
        return {}
    out: _After = {}
    for mask in range(1, 1 << len(remedies)):
        chosen = [k for k in range(len(remedies)) if mask >> k & 1]
        row = first.changes[chosen[-1]]
        listed = chosen == list(range(len(chosen)))
        limits = row.after_low_us, row.after_high_us
        us, (low, high) = (row.after_us, limits) if listed else _after(analysis, [remedies[k] for k in chosen])
        out[mask] = us, low, high, row.takes if listed else within(us, (low, high))
    return out


def _after(analysis: Analysis, remedies: Sequence[Remedy]) -> tuple[float, tuple[float, float]]:
    base = replayed(analysis.step)
    if len(remedies) == 1:
        low, high = remedies[0].range_us
        return base - remedies[0].alone_us, (max(0.0, base - high), base - low)
    edits = [remedy.change for remedy in remedies]
    findings = tuple(id for r in remedies for id in r.findings)
    after = analysis.projector.after(findings, edits, at=None) if analysis.projector else None
    return (after.us, after.range_us) if after else (base, (base, base))


# the tabs


def _opened(analysis: Analysis, first: Front, tabs: Sequence[str]) -> str:
    wanted = {Bound.DEVICE: "kernels", Bound.HOST: "host" if first.most else ""}.get(analysis.step.bound, "")
    return wanted if wanted in tabs else tabs[0]


def _timeline_note(lanes: dict[str, Any]) -> str:
    if not lanes["length"] or lanes["whole"]:
        return f"All {lanes['slices']:,} slices." if lanes["length"] else ""
    return (
        f"{lanes['slices']:,} of {lanes['of']:,} slices: those around the findings. "
        "Elsewhere the lanes show how busy they were."
    )


def _without(lanes: dict[str, Any]) -> dict[tuple[int, ...], int]:
    """Return the index of the projected step without exactly these findings, by their numbers."""
    return {tuple(step["findings"]): number for number, step in reversed(list(enumerate(lanes["without"])))}


# findings and habits


_SORTS = (
    ("", "what it saves"),
    ("wait", "wait"),
    ("idle", "idle after"),
    ("often", "how often"),
    ("severity", "severity"),
)
"""Sort orders of findings besides the default: an attribute, and its label."""


def _findings_note(findings: Sequence[FindingText], costed: bool) -> str:
    total = len(findings)
    if not total:
        return ""
    points = sum(finding.of.count for finding in findings)
    cut = f" The first {MAX_FINDINGS} are shown." if total > MAX_FINDINGS else ""
    counted = f"{total} finding{'s' * (total != 1)}, {points:,} sync point{'s' * (points != 1)}"
    return f"{counted}.{' Times are means per step.' if costed else ''}{cut}"


def _finding(
    finding: FindingText, analysis: Analysis, costed: bool, without: dict[tuple[int, ...], int]
) -> dict[str, Any]:
    f, often = finding.of, ", ".join(finding.circumstances)
    cost = f"waits {finding.waits}, idle after {finding.idle}, {times(f.per_step)}" if costed else often
    share = f" ({finding.share})" if finding.share else ""
    return {
        "id": f"f{finding.number}",
        "kind": "finding",
        "severity": f.severity.value,
        "title": shown(f.title, 200),
        "place": shown(finding.where, 200),
        "saves": f"{finding.saves}{share}" if costed else "",
        "cost": cost,
        "data": {
            "finding": finding.number,
            "habit": "",
            "without": without.get((finding.number,), ""),
            "cause": f.cause.value,
            "phase": f.phase.value,
            "scope": shown(" > ".join(f.scope), 120) or "(no scope)",
            "owner": shown(f.owner, 40),
            "wait": f.waited_us,
            "idle": f.idle_us,
            "often": f.per_step,
            "severity": _RANK[f.severity] * 1000 - finding.number,
        },
        "detail": markup([*([_four(finding)] if costed else []), *tabs.finding(f, analysis.step)]),
    }


def _four(finding: FindingText) -> Grid:
    moved = finding.of.moved_us
    return _in_a_row(
        [
            ("wait", finding.waits, "", False),
            ("idle after", finding.idle, "", False),
            ("moved", "–" if moved is None else duration(moved), "", True),
            ("recoverable", finding.saves, "", True),
        ]
    )


def _habit(habit: HabitText, number: int) -> dict[str, Any]:
    return {
        "id": f"h{number}",
        "kind": "habit",
        "severity": habit.of.severity.value,
        "title": shown(habit.of.title, 160),
        "place": shown(habit.where, 120),
        "saves": habit.saves,
        "cost": habit.doubt,
        "data": {"finding": "", "habit": number, "without": ""},
        "detail": markup(tabs.habit(habit.of)),
    }


# script and data


def _json(value: Any) -> Markup:
    """Return JSON that is safe inside a script element: it can neither end the element nor begin another."""
    text = msgspec.json.encode(value).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@functools.cache
def _script() -> Markup:
    return Markup("\n").join(asset(name) for name in _SCRIPTS)
