"""From an Analysis to one self-contained HTML file: verdict, timeline, findings; it loads nothing and runs no name.

What a trace calls its things is hostile input. Three walls keep it text: jinja2 escapes every value, the script puts
names on the page only as text, and the file's Content-Security-Policy allows no script or style but its own, by hash.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import ntpath
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup, escape

from syncscan import __version__
from syncscan.model.analysis import Analysis, Bound, StepSummary
from syncscan.model.finding import Finding, Severity
from syncscan.model.projection import Group, Projection
from syncscan.model.trace import Vendor
from syncscan.report.names import shown
from syncscan.report.phrases import VERDICTS, certainty, chain, place, real, sentences, summary
from syncscan.report.plain import duration, percent, times
from syncscan.report.timeline import timeline

MARK = '<meta name="generator" content="syncscan'
"""Stands near the top of every report: what tells a report from a file that is somebody's own."""
MAX_FINDINGS = 300
MAX_OCCURRENCES = 6
_SCRIPTS = ("columns.js", "view.js", "paint.js", "timeline.js", "findings.js", "page.js")
MAX_CARDS = 3

_RANK = {Severity.HIGH: 3, Severity.MEDIUM: 2, Severity.LOW: 1, Severity.INFO: 0}


@dataclass(frozen=True, slots=True)
class _Tile:
    label: str
    value: str
    note: str
    projected: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """A rectangle of a bar that is 1000 wide."""

    look: str
    x: float
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class _Card:
    """One thing to do; `links` are findings as (number, title, place)."""

    text: str
    links: tuple[tuple[int, str, str], ...] = ()
    gain: str = ""
    projected: bool = False


@dataclass(frozen=True, slots=True)
class _Bar:
    label: str
    value: str
    spoken: str
    parts: tuple[_Part, ...]
    range: tuple[float, float] | None = None
    projected: bool = False


def render(analysis: Analysis) -> str:
    """The report as one HTML document.

    Args:
        analysis: any analysis. Projections are shown where it can replay the step.

    Returns:
        Text that encodes as UTF-8, whatever the trace's names hold.
    """
    step, findings = analysis.step, analysis.findings[:MAX_FINDINGS]
    projection = _projection(analysis)
    cards = _cards(analysis, projection)
    drawn = timeline(analysis)
    origin = drawn.pop("origin")
    return _template().render(
        version=__version__,
        file=shown(_basename(analysis.trace.info.path), 120) or "trace",
        facts=_facts(analysis),
        verdict={"headline": f"{VERDICTS[step.bound]}.", "reason": _reason(analysis, projection)},
        tiles=_tiles(step),
        bars=_bars(step),
        todo_title=_todo_title(cards),
        cards=cards,
        timeline_note=_timeline_note(drawn),
        findings=[_finding(f, n, analysis, origin) for n, f in enumerate(findings)],
        findings_note=_findings_note(analysis),
        columns=_COLUMNS,
        no_findings=_no_findings(analysis),
        warnings=[shown(w, 600) for w in analysis.warnings],
        style=_asset("report.css"),
        script=_script(),
        data=_json({**drawn, "labels": [_label(f) for f in findings]}),
    )


# the page's parts


def _projection(analysis: Analysis) -> Projection | None:
    return analysis.whatif("all") if real(analysis.findings) and analysis.replay is not None else None


def _facts(analysis: Analysis) -> list[str]:
    info, step = analysis.trace.info, analysis.step
    devices = [shown(d, 60) for d in dict.fromkeys(info.devices)]
    rank = f"rank {info.rank}" + (f" of {info.world_size}" if info.world_size else "")
    facts = [
        " + ".join(devices[:2]) or ("" if info.vendor is Vendor.NONE else info.vendor.value),
        rank if info.rank is not None else "",
        f"{step.count} step{'s' * (step.count != 1)}" if analysis.trace.steps else "no steps marked",
        f"{info.events:,} events",
        _size(info.size_bytes),
    ]
    return [f for f in facts if f]


def _reason(analysis: Analysis, projection: Projection | None) -> str:
    said = [shown(analysis.step.reason, 600), summary(analysis)]
    if projection is not None and projection.bound_after is not analysis.step.bound:
        said.append(f"{VERDICTS[projection.bound_after]} then")
    return sentences(*said)


def _tiles(step: StepSummary) -> list[_Tile]:
    busy = percent(step.device_busy_us, step.observed_us)
    tiles = [
        _Tile("step", duration(step.observed_us), f"host {duration(step.host_us)}"),
        _Tile("device busy", busy, duration(step.device_busy_us)),
        _Tile("host waits", duration(step.wait_us), "in syncs, a step"),
        _Tile("device idle behind syncs", duration(step.bubble_us), "a step"),
    ]
    if step.input_us > 0:
        tiles.append(_Tile("waits for input", duration(step.input_us), "a step"))
    if step.unprofiled_us is not None:
        tiles.append(_Tile("step, unprofiled", duration(step.unprofiled_us), "timed without the profiler"))
    if step.recoverable_us is not None:
        limits = step.recoverable_range_us
        note = f"{duration(limits[0])} to {duration(limits[1])}, projected" if limits else "a step, projected"
        tiles.append(_Tile("recoverable", duration(step.recoverable_us), note, projected=True))
    return tiles


def _bars(step: StepSummary) -> list[_Bar]:
    """The measured step, without the profiler too where that was timed, and the projected one, to one scale."""
    if not step.observed_us:
        return []
    before = step.unprofiled_us or step.observed_us
    whole = max(step.observed_us, before)
    bars = [_measured_bar(step, whole)]
    if step.unprofiled_us is not None:
        part = _Part("work", 0.0, _x(before, whole), f"timed without the profiler: {duration(before)}")
        bars.append(_Bar("unprofiled", duration(before), f"Step without the profiler: {duration(before)}", (part,)))
    if step.recoverable_us is not None and step.recoverable_range_us is not None:
        bars.append(_projected_bar(before, step.recoverable_us, step.recoverable_range_us, whole))
    return bars


def _measured_bar(step: StepSummary, whole: float) -> _Bar:
    busy = min(step.device_busy_us, step.observed_us)
    behind = min(step.bubble_us, step.observed_us - busy)
    looks = (("work", "device works"), ("bubble", "idle behind syncs"), ("idle", "idle otherwise"))
    parts, at = [], 0.0
    for (look, label), length in zip(looks, (busy, behind, step.observed_us - busy - behind), strict=True):
        parts.append(_Part(look, _x(at, whole), _x(length, whole), f"{label}: {duration(length)}"))
        at += length
    spoken = "Measured step: " + ", ".join(p.label for p in parts)
    return _Bar("measured", duration(step.observed_us), spoken, tuple(parts))


def _projected_bar(before: float, gain: float, limits: tuple[float, float], whole: float) -> _Bar:
    after, low, high = (max(before - g, 0.0) for g in (gain, limits[1], limits[0]))
    spoken = f"Projected without syncs: {duration(after)}, from {duration(low)} to {duration(high)}"
    part = _Part("projected", 0.0, _x(after, whole), f"projected: {duration(after)}")
    return _Bar("without syncs", duration(after), spoken, (part,), (_x(low, whole), _x(high, whole)), projected=True)


def _x(us: float, whole: float) -> float:
    return round(max(0.0, min(1000.0, 1000.0 * us / whole)), 1) if whole else 0.0


def _cards(analysis: Analysis, projection: Projection | None) -> list[_Card]:
    """What to do, the most useful first: the sets worth removing, then what limits the step once they are gone."""
    numbers = {f.id: n for n, f in enumerate(analysis.findings)}
    step = analysis.step
    if analysis.groups:
        cards = [_group_card(g, analysis, numbers, first=not k) for k, g in enumerate(analysis.groups[:MAX_CARDS])]
        return [*cards, *([_then(projection)] if projection and len(cards) < MAX_CARDS else [])]
    if step.recoverable_us is None:
        worst = [f for f in real(analysis.findings) if f.severity in (Severity.HIGH, Severity.MEDIUM)]
        if worst:
            return [_card([f], numbers, _costs(f)) for f in worst[:MAX_CARDS]]
    return [_Card(text=shown(line, 600)) for line in step.advice] or [_Card(text=_nothing(analysis))]


def _group_card(group: Group, analysis: Analysis, numbers: dict[str, int], first: bool) -> _Card:
    members = [analysis.findings[numbers[i]] for i in group.ids if i in numbers]
    saves = f"saves about {duration(group.saving_us)} a step ({percent(group.saving_us, analysis.step.observed_us)})"
    if len(members) > 1:
        saves += f"; any one of them alone at most {duration(max(group.alone_us, 0.0))}"
    elif not first:
        saves += ", once the ones before are done"
    elif members and members[0].gain is not None:
        low, high = members[0].gain.range_us
        saves += f", projected {duration(low)} to {duration(high)}"
    return _card(members, numbers, saves, projected=True)


def _card(members: Sequence[Finding], numbers: dict[str, int], gain: str, projected: bool = False) -> _Card:
    fixes = dict.fromkeys(f.diagnosis.fix for f in members)
    links = tuple((numbers[f.id], shown(f.diagnosis.title, 160), _place(f)) for f in members)
    return _Card(shown(next(iter(fixes), ""), 400), links, gain, projected)


def _then(p: Projection) -> _Card:
    """What limits the step without its syncs."""
    if p.bound_after is Bound.DEVICE:
        text = f"After that the device is the limit: {duration(p.device_limit_us)} of work a step."
    else:
        text = (
            f"After that the host is the limit: {duration(p.host_limit_us)} of its own work a step. "
            "Fewer and larger ops, torch.compile or CUDA graphs come next."
        )
    return _Card(text, projected=True)


def _costs(f: Finding) -> str:
    return f"waits {duration(f.wait_us)} and leaves the device idle for {duration(f.bubble_us)} a step"


def _todo_title(cards: Sequence[_Card]) -> str:
    if not any(c.links for c in cards):
        return "What to do"
    return {1: "The one thing to do", 2: "The two things to do"}.get(len(cards), "The three things to do")


def _nothing(analysis: Analysis) -> str:
    if not analysis.findings:
        return _no_findings(analysis)
    return "The syncs below cost this step nothing that matters."


def _timeline_note(drawn: dict[str, Any]) -> str:
    if not drawn["span"]:
        return "This trace holds nothing to draw."
    if drawn["whole"]:
        return f"All {drawn['slices']:,} slices."
    return (
        f"{drawn['slices']:,} of {drawn['of']:,} slices: those around the findings. "
        "Elsewhere the lanes show how busy they were."
    )


def _findings_note(analysis: Analysis) -> str:
    total = len(analysis.findings)
    if not total:
        return ""
    points = sum(f.count for f in analysis.findings)
    cut = f" The first {MAX_FINDINGS} are shown." if total > MAX_FINDINGS else ""
    counted = f"{total} finding{'s' * (total != 1)}, {points:,} sync point{'s' * (points != 1)}"
    return f"{counted}. Times are means per step.{cut}"


def _no_findings(analysis: Analysis) -> str:
    if not len(analysis.trace.device_rows):
        return "No sync point was found. The trace holds no device work: it may have been recorded without the device."
    return "No sync point was found: the host never waits for the device in this trace."


_COLUMNS = (
    {"key": "severity", "label": "severity", "look": "c-severity"},
    {"key": "what", "label": "finding", "look": "c-what"},
    {"key": "cause", "label": "cause", "look": "c-cause"},
    {"key": "phase", "label": "phase", "look": "c-phase"},
    {"key": "owner", "label": "owner", "look": "c-owner"},
    {"key": "count", "label": "a step", "look": "num"},
    {"key": "wait", "label": "wait", "look": "num"},
    {"key": "bubble", "label": "idle behind", "look": "num"},
    {"key": "recoverable", "label": "recoverable", "look": "num projected-text"},
    {"key": "", "label": "", "look": "c-go"},
)


def _finding(f: Finding, number: int, analysis: Analysis, origin: int) -> dict[str, Any]:
    d, w, gain = f.diagnosis, f.where, f.gain
    whole = analysis.step.observed_us
    return {
        "number": number,
        "severity": f.severity.value,
        "rank": _RANK[f.severity] * 1000 - number,
        "title": shown(d.title, 200),
        "place": _place(f),
        "cause": d.cause.value,
        "phase": w.phase.value,
        "owner": shown(w.owner, 40),
        "scope": shown(" > ".join(w.scope), 120) or "(no scope)",
        "per_step": f.per_step,
        "per_step_text": f"{f.per_step:.3g}",
        "wait_us": f.wait_us,
        "bubble_us": f.bubble_us,
        "recoverable_us": gain.recoverable_us if gain else None,
        "share": _x(gain.recoverable_us, whole) / 10 if gain else 0,
        "projection": _projected(f),
        "why": shown(d.why, 1500),
        "fix": shown(d.fix, 1500),
        "when_fine": shown(d.when_fine, 1500),
        "evidence": _evidence(f),
        "count": f.count,
        "occurrences": _occurrences(f, analysis, origin),
    }


def _projected(f: Finding) -> str:
    if f.gain is None:
        return ""
    low, high = f.gain.range_us
    return (
        f"{duration(f.gain.recoverable_us)} a step recoverable ({duration(low)} to {duration(high)}); "
        f"{duration(f.gain.moved_us)} of the wait would turn up again at the next sync"
    )


def _evidence(f: Finding) -> list[tuple[str, str]]:
    w = f.where
    rows = [
        ("rule", f"{f.rule} · {f.id}"),
        ("line", f"{place(w.source)}, {certainty(w.source)}" if w.source else ""),
        ("called from", f"{place(w.framework)} {w.framework.function}" if w.framework else ""),
        ("chain", " › ".join(chain(f))),
        ("scope", " › ".join(w.scope)),
        ("module", " › ".join(w.module)),
        ("thread", w.thread),
        ("confidence", f.confidence.value),
        ("measured", f"{duration(f.wait_us)} waiting, {duration(f.bubble_us)} idle behind, {times(f.per_step)}"),
    ]
    return [(label, shown(value)) for label, value in rows if value]


def _occurrences(f: Finding, analysis: Analysis, origin: int) -> list[dict[str, Any]]:
    costly = sorted(f.occurrences, key=lambda o: -(o.cost.wait_ns + o.cost.bubble_ns))[:MAX_OCCURRENCES]
    begins = {s.number: s.ts for s in analysis.trace.steps}
    return [
        {
            "step": "–" if o.where.step is None else o.where.step,
            "at": (o.sync.ts - begins.get(-1 if o.where.step is None else o.where.step, origin)) / 1e3,
            "ns": o.sync.ts - origin,
            "wait_us": o.cost.wait_ns / 1e3,
            "bubble_us": o.cost.bubble_ns / 1e3,
        }
        for o in costly
    ]


def _label(f: Finding) -> dict[str, str]:
    return {"title": shown(f.diagnosis.title, 120), "place": _place(f)}


def _place(f: Finding) -> str:
    """Where a finding is, as short as it can be told: line, scope, op."""
    w = f.where
    parts = (place(w.source), " › ".join(w.scope[-2:]), w.op)
    return shown(" · ".join(p for p in parts if p), 200)


# words and numbers


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB" if size else ""


def _basename(path: str) -> str:
    return ntpath.basename(posixpath.basename(path))


def prose(text: str) -> Markup:
    """Plain text as markup: what stands between backticks becomes code."""
    parts = re.split(r"`([^`]+)`", text)
    return Markup().join(Markup("<code>{}</code>").format(p) if k % 2 else escape(p) for k, p in enumerate(parts))


# assets


def _json(value: Any) -> Markup:
    """JSON that can stand inside a script element: nothing in it can end the element or begin another."""
    text = msgspec.json.encode(value).decode()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _integrity(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


@functools.cache
def _environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("syncscan.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"duration": duration, "prose": prose, "integrity": _integrity}
    return env


def _template() -> jinja2.Template:
    return _environment().get_template("report.html.j2")


@functools.cache
def _asset(name: str) -> Markup:
    """A file of the package's own, as it is: its text is trusted."""
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), name)[0])


@functools.cache
def _script() -> Markup:
    return Markup("\n").join(_asset(name) for name in _SCRIPTS)
