"""Render a Diff and an analysis of each state as one self-contained HTML page, with one aligned step of each.

The page runs no script: its Content-Security-Policy allows none, and no style but its own, by hash. jinja2 escapes
every value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64, distinct
from syncscan.model.diff import Diff, SiteStatus
from syncscan.model.interval import Interval
from syncscan.model.trace import CALLS, NONE, Category, Trace
from syncscan.report import step_picture
from syncscan.report.assets import asset, template
from syncscan.report.diff_story import TITLES, ChangeText, DiffStory, story_of
from syncscan.report.phrases import sentences
from syncscan.report.shown_names import shown
from syncscan.report.timeline_intervals import home_step
from syncscan.report.units import duration
from syncscan.version import __version__

MAX_ROWS = 100
"""Rows per table; JSON has them all."""
WIDTH = 1000
"""Width of the longer step, in drawing units."""
THIN = 0.4
"""Slices thinner than this many drawing units are merged with their neighbors."""
STREAMS = 4
"""Streams of the device that are drawn, busiest first."""


class DiffBar(msgspec.Struct, frozen=True):
    """A rectangle of a lane."""

    x: float
    width: float
    look: str
    name: str


class DiffLane(msgspec.Struct, frozen=True):
    """Rectangles under one label."""

    label: str
    bars: tuple[DiffBar, ...]


def render(diff: Diff, before: Analysis, after: Analysis) -> str:
    """Return the diff as one HTML document.

    Args:
        before: a recording of the earlier state, of which a step is drawn.
    """
    story = story_of(diff)
    steps = [_step(a) for a in (before, after)]
    scale = WIDTH / max(1, *(step.length for step in steps))
    marked = _marks(diff)
    drawn = zip(("before", "after"), (story.before, story.after), (before, after), steps, strict=True)
    pictures = [_picture(name, facts, list(_lanes(a, s, scale, marked)), s, scale) for name, facts, a, s in drawn]
    return template("diff.html.j2").render(
        version=__version__,
        style=asset("page.css") + step_picture.style() + asset("diff.css"),
        picture=step_picture.in_page(step_picture.measured(before, after)),
        verdict=shown(f"{story.verdict}.", 300),
        said=[shown(sentences(text), 600) for text in (*story.moved, story.step, story.promise, story.habits) if text],
        tables=list(_tables(story)),
        same=story.same,
        notes=[shown(note, 600) for note in story.notes],
        pictures=pictures,
        width=WIDTH,
        ticks=list(_ticks(max(step.length for step in steps), scale)),
    )


def _picture(state: str, facts: str, lanes: list[DiffLane], step: Interval, scale: float) -> dict[str, Any]:
    return {"state": state, "facts": shown(facts, 200), "lanes": lanes, "end": step.length * scale}


def _tables(story: DiffStory) -> Iterator[dict[str, Any]]:
    for kind, changes in story.changes.items():
        rows = [_row(change) for change in changes[:MAX_ROWS]]
        yield {"kind": kind.value, "title": TITLES[kind], "rows": rows, "more": len(changes) - len(rows)}


def _row(change: ChangeText) -> dict[str, str]:
    texts = {"what": change.what, "where": change.where, "numbers": change.numbers}
    return {"sign": change.sign, **{name: shown(text, 240) for name, text in texts.items()}}


def _marks(diff: Diff) -> dict[str, str]:
    """Return, by finding id, how its waits are drawn."""
    looks = {SiteStatus.NEW: "new", SiteStatus.GONE: "gone", SiteStatus.CHANGED: "changed"}
    sites = ((looks.get(c.change, "wait"), site) for c in diff.changes for site in (c.before, c.after) if site)
    return {f.id: look for look, site in sites for f in site.findings}


def _step(analysis: Analysis) -> Interval:
    """Return the step to draw: the one with the worst sync point, else a typical one, else the whole trace."""
    step, s = home_step(analysis), analysis.trace.slices
    if step:
        return Interval(step.ts, max(step.end, step.ts + 1))
    return Interval(int(s.ts.min()), max(int(s.end.max()), int(s.ts.min()) + 1)) if len(s) else Interval(0, 1)


def _lanes(analysis: Analysis, step: Interval, scale: float, marked: dict[str, str]) -> Iterator[DiffLane]:
    """Yield the scopes, waits and calls of the step's host thread, and the busiest streams."""
    trace = analysis.trace
    track = next((t.track for t in trace.main_steps), NONE)
    scopes = _within(trace, trace.is_category(Category.ANNOTATION) & _outermost(trace), step, track)
    yield DiffLane("scopes", tuple(_bars(trace, scopes, step, scale, "scope")))
    yield DiffLane("waits", tuple(_waits(analysis, step, scale, marked)))
    calls = _within(trace, trace.is_category(*CALLS), step, track)
    yield DiffLane("calls", tuple(_bars(trace, calls, step, scale, "call")))
    s, rows = trace.slices, trace.device_rows
    work = rows[(s.end[rows] > step.begin) & (s.ts[rows] < step.end)]
    places = trace.slices.device[work].astype(np.int64) << 32 | trace.slices.stream[work].astype(np.int64) & 0xFFFFFFFF
    busiest = sorted(distinct(places).tolist(), key=lambda p: -int(trace.slices.dur[work[places == p]].sum()))
    for place in busiest[:STREAMS]:
        rows = work[places == place]
        label = f"stream {int(trace.slices.stream[rows[0]])}"
        yield DiffLane(label, tuple(_bars(trace, rows, step, scale, "work")))


def _outermost(trace: Trace) -> Any:
    """Return a mask of the slices outside of all program scopes; the steps' own markers don't count as scopes."""
    steps = np.array([step.row for step in trace.steps], np.int64)
    return (np.isin(trace.slices.parent, np.append(steps, NONE))) & ~np.isin(np.arange(len(trace.slices)), steps)


def _within(trace: Trace, mask: Any, step: Interval, track: int) -> Int64:
    s = trace.slices
    mask = mask & (s.end > step.begin) & (s.ts < step.end) & ((s.track == track) | (track == NONE))
    rows: Int64 = np.flatnonzero(mask)
    return rows[np.argsort(s.ts[rows], kind="stable")]


def _bars(trace: Trace, rows: Int64, step: Interval, scale: float, look: str) -> Iterator[DiffBar]:
    """Yield a bar per slice; neighbors too thin to be seen are merged."""
    s = trace.slices
    begin = (np.maximum(s.ts[rows], step.begin) - step.begin) * scale
    end = (np.minimum(s.end[rows], step.end) - step.begin) * scale
    first = 0
    for k in range(len(rows)):
        last = k + 1 == len(rows)
        if last or begin[k + 1] - end[k] > THIN or end[k] - begin[first] > THIN or end[k + 1] - begin[k + 1] > THIN:
            many = k - first
            name = (
                f"{many + 1} of them"
                if many
                else f"{shown(trace.name(int(rows[k])), 120)}, {duration(s.dur[rows[k]] / 1e3)}"
            )
            yield DiffBar(round(float(begin[first]), 2), round(max(THIN, float(end[k] - begin[first])), 2), look, name)
            first = k + 1


def _waits(analysis: Analysis, step: Interval, scale: float, marked: dict[str, str]) -> Iterator[DiffBar]:
    for f in analysis.findings:
        for o in f.occurrences:
            if step.begin <= o.sync.ts < step.end:
                x, width = (o.sync.ts - step.begin) * scale, (o.sync.end - o.sync.ts) * scale
                name = f"{shown(f.diagnosis.title, 120)}, waits {duration(o.cost.wait_ns / 1e3)}"
                yield DiffBar(round(x, 2), round(max(2.0, width), 2), marked.get(f.id, "wait"), name)


def _ticks(length: int, scale: float) -> Iterator[tuple[float, str]]:
    """Yield tick positions at round times, with labels."""
    apart = 10 ** int(np.log10(max(10, length / 4)))
    every = next(apart * n for n in (1, 2, 5, 10) if length / (apart * n) <= 6)
    yield from ((round(at * scale, 2), duration(at / 1e3) if at else "0") for at in range(0, length + 1, every))
