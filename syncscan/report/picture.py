"""Draw an Analysis without a browser: its costliest step before and after or as lanes, or its host's time as an icicle.

Lanes and boxes are computed first, as plain values; matplotlib, imported only in this module, draws them.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from syncscan.errors import MissingExtra, UsageError
from syncscan.facts.device_work import DeviceWork
from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import Severity
from syncscan.model.interval import Interval
from syncscan.model.picture import Picture
from syncscan.model.trace import DEVICE, Category, Trace
from syncscan.report import before_after_file, before_after_png, before_after_svg, host
from syncscan.report.before_after import before_after
from syncscan.report.shown_names import shown
from syncscan.report.story import FindingText, story_of
from syncscan.report.timeline import CLOCK_SLACK_NS
from syncscan.report.timeline_intervals import home, home_step
from syncscan.report.timeline_lanes import stacked
from syncscan.report.units import duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, DPI = 10.0, 0.34, 100
"""Width of a picture and height of a row in inches; dots per inch."""
MAX_STREAMS, MAX_BARS, MAX_DEPTH = 6, 4000, 24
"""Most streams, bars per lane (longest first) and rows of an icicle that are drawn."""
_SEVERITIES = {Severity.HIGH: "#c62828", Severity.MEDIUM: "#ef6c00", Severity.LOW: "#c9a400", Severity.INFO: "#9e9e9e"}
_SCOPES = ("#b3cde3", "#ccebc5", "#decbe4", "#fed9a6", "#e5d8bd", "#fddaec", "#d9d9d9")
_OP, _KERNEL, _COPY, _IDLE = "#8da0b3", "#3b6fb6", "#2a9d8f", "#f4a6a6"
_OWNERS = ("#e07a3f", "#7fa6cc", "#9cc59c", "#b9a3cf", "#d3b48c", "#8fc7c3", "#cccccc")
_LETTER = 0.075
"""Approximate width of a letter in inches, by which text is fitted to a bar."""


class Bar(msgspec.Struct, frozen=True):
    """A rectangle of a lane: ns since the trace's begin (in an icicle µs of a step), color, and text if it fits."""

    begin: float
    length: float
    color: str
    text: str = ""


class Lane(msgspec.Struct, frozen=True):
    """A row of bars and its label."""

    label: str
    bars: tuple[Bar, ...]


def render(analysis: Analysis, of: str) -> Picture:
    """Return a picture of an analysis.

    Args:
        analysis: any analysis.
        of: `timeline`, `step` or `host`.

    Raises:
        UsageError: there is no such picture, or nothing to draw.
        MissingExtra: matplotlib isn't installed.
    """
    draw = {"timeline": _timeline, "step": _step, "host": _host}.get(of)
    if draw is None:
        raise UsageError(f"There is no picture of {of!r}.", "Ask for 'timeline', 'step' or 'host'.")
    return draw(analysis)


def available() -> bool:
    """Return whether pictures can be drawn: matplotlib is installed."""
    import importlib.util

    return importlib.util.find_spec("matplotlib") is not None


# the step


def _step(analysis: Analysis) -> Picture:
    story = story_of(analysis)
    drawn = before_after(analysis, story)
    if drawn is None:
        raise UsageError("There is nothing to draw: no step of this trace can be replayed.", "Record a step on a GPU.")
    bars = len(drawn.falls) + (drawn.limit_us is not None) if drawn.fixes else 0
    after = f" · {drawn.shown.sentence}" if drawn.fixes else ""

    def paint(figure: Figure) -> None:
        heights = [4.2, max(1.0, 0.75 * bars)]
        parts = figure.subplots(2, height_ratios=heights) if bars else [figure.add_subplot()]
        before_after_png.lanes(parts[0], drawn)
        parts[0].set_title(f"{story.verdict} · {drawn.name}{after}", loc="left", fontsize=10)
        if bars:
            before_after_png.falls(parts[1], drawn)

    png = _painted(paint, 2.4 + 0.45 * bars)
    return Picture(png, f"{story.verdict} · {before_after_svg.spoken(drawn)}.", before_after_file.document(analysis))


def _timeline(analysis: Analysis) -> Picture:
    if analysis.trace.info.capture.pretended:
        raise UsageError("Nothing to draw: a dry run has no times.", "Record a step on a GPU.")
    view = _view(analysis)
    rows = list(lanes(analysis, view)) if view else []
    if view is None or not rows:
        raise UsageError("Nothing to draw: the trace has neither ops nor device work.", "Record a step.")
    story, step = story_of(analysis), home_step(analysis)
    title = f"{story.verdict} · {f'step {step.number}' if step else 'the whole trace'}"
    words = f"{title}, {duration(view.length / 1e3)} in {len(rows)} lanes: {', '.join(lane.label for lane in rows)}."

    def paint(axes: Axes) -> None:
        _paint(axes, rows, view.begin, view.end)
        axes.set_xlabel("ms")
        axes.set_title(title, loc="left", fontsize=10)
        axes.xaxis.set_major_formatter(lambda ns, _: f"{(ns - view.begin) / 1e6:g}")
        axes.set_xticks(_ticks(view))

    return Picture(_png(paint, len(rows)), words)


def _view(analysis: Analysis) -> Interval | None:
    s = analysis.trace.slices
    if not len(s.ts):
        return None
    return home(analysis, Interval(int(s.ts.min()), int(s.end.max())))


def lanes(analysis: Analysis, view: Interval) -> Iterator[Lane]:
    """Yield lanes from the top: scopes, ops and syncs of each host thread with a step or sync, then the streams."""
    t, findings = analysis.trace, story_of(analysis).findings
    waiting = {o.sync.track for f in findings for o in f.of.occurrences if view.touches(o.sync.ts, o.sync.end)}
    tracks = dict.fromkeys([*(s.track for s in t.steps), *sorted(waiting)])
    for number, track in enumerate(tracks):
        thread = "" if len(tracks) == 1 else f", {t.tracks[track].thread or f'thread {t.tracks[track].tid}'}"
        own = t.track_rows(track)
        rows = np.arange(own.start, own.stop)
        if number == 0:
            yield from _lane("scopes", _scopes(t, rows, view))
        yield from _lane(shown(f"ops{thread}", 30), _outermost(t, rows, view, (Category.CPU_OP,), _OP))
        yield from _lane(shown(f"syncs{thread}", 30), _syncs(findings, track, view))
    yield from _streams(analysis, view)


def _lane(label: str, bars: Sequence[Bar]) -> Iterator[Lane]:
    if bars:
        yield Lane(label, tuple(sorted(bars, key=lambda b: -b.length)[:MAX_BARS]))


def _scopes(t: Trace, rows: Int64, view: Interval) -> list[Bar]:
    steps = np.array([s.row for s in t.steps], np.int64)
    scopes = rows[(t.slices.category[rows] == Category.ANNOTATION) & ~np.isin(rows, steps)]
    chosen = _visible(t, scopes, view)
    colors: dict[str, str] = {}
    for row in chosen.tolist():
        colors.setdefault(t.name(row), _SCOPES[len(colors) % len(_SCOPES)])
    return [_bar(t, row, colors[t.name(row)], t.name(row)) for row in chosen.tolist()]


def _outermost(t: Trace, rows: Int64, view: Interval, kinds: tuple[Category, ...], color: str) -> list[Bar]:
    chosen = _visible(t, rows[np.isin(t.slices.category[rows], kinds)], view)
    return [_bar(t, row, color, t.name(row).removeprefix("aten::")) for row in chosen.tolist()]


def _visible(t: Trace, rows: Int64, view: Interval, slack: int = 0) -> Int64:
    """Return the rows that touch the view and lie inside no other of them."""
    s = t.slices
    rows = rows[(s.ts[rows] < view.end) & (s.end[rows] > view.begin)]
    rows = rows[np.lexsort((-s.dur[rows], s.ts[rows]))]
    outermost: Int64 = rows[stacked(s.ts[rows], s.end[rows], slack) == 0]
    return outermost


def _bar(t: Trace, row: int, color: str, text: str) -> Bar:
    return Bar(int(t.slices.ts[row]), int(t.slices.dur[row]), color, shown(text, 60))


def _syncs(findings: Sequence[FindingText], track: int, view: Interval) -> list[Bar]:
    return [
        Bar(o.sync.ts, o.sync.end - o.sync.ts, _SEVERITIES[f.severity], f"{f.rule}, saves {f.saves}")
        for f in findings
        for o in f.of.occurrences
        if o.sync.track == track and view.touches(o.sync.ts, o.sync.end)
    ]


def _streams(analysis: Analysis, view: Interval) -> Iterator[Lane]:
    t, s = analysis.trace, analysis.trace.slices
    work = t.device_rows[np.isin(s.category[t.device_rows], DEVICE)]
    seen = _visible_work(t, work, view)
    keys = sorted({(int(s.device[r]), int(s.stream[r])) for r in seen.tolist()})
    several = len({device for device, _ in keys}) > 1
    for device, stream in keys[:MAX_STREAMS]:
        visible = _visible(t, seen[(s.device[seen] == device) & (s.stream[seen] == stream)], view, CLOCK_SLACK_NS)
        kernels = [_bar(t, r, _KERNEL if s.category[r] == Category.KERNEL else _COPY, "") for r in visible.tolist()]
        yield from _lane(f"device {device}, stream {stream}" if several else f"stream {stream}", kernels)
    for device in sorted({device for device, _ in keys}):
        yield from _lane(
            f"device {device}, idle after syncs" if several else "idle after syncs", _idle(analysis, device, view)
        )


def _visible_work(t: Trace, rows: Int64, view: Interval) -> Int64:
    return rows[(t.slices.ts[rows] < view.end) & (t.slices.end[rows] > view.begin)]


def _idle(analysis: Analysis, device: int, view: Interval) -> list[Bar]:
    work = analysis.trace.kept(DeviceWork).of(device)
    waits = [o for f in analysis.findings for o in f.occurrences if o.sync.device == device and o.cost.bubble_ns > 0]
    begins = work.idle_from(np.array([o.sync.released for o in waits], np.int64)).tolist()
    return [
        Bar(begin, o.cost.bubble_ns, _IDLE, duration(o.cost.bubble_ns / 1e3))
        for begin, o in zip(begins, waits, strict=True)
        if view.touches(begin, begin + o.cost.bubble_ns)
    ]


# the host


def _host(analysis: Analysis) -> Picture:
    rows, step_us = icicle(analysis)
    if not rows:
        raise UsageError(
            f"{analysis.trace.info.path} has no host samples.",
            "Capture with sample=5, or with `syncscan profile`.",
        )
    columns = host.picture(analysis.host_time)
    assert columns is not None
    owners = columns["owners"][: len(_OWNERS)]
    colors = [_owner_color(columns, number) for number in range(len(owners))]
    words = f"Host time in a step of {duration(step_us)}: " + ", ".join(f"{n} {p}" for n, p in owners) + "."

    def paint(axes: Axes) -> None:
        _paint(axes, rows, 0.0, step_us)
        axes.set_yticks([])
        axes.set_xlabel("ms per step, sampled without the profiler")
        axes.set_title("Callers above callees", loc="left", fontsize=10)
        axes.xaxis.set_major_formatter(lambda us, _: f"{us / 1e3:g}")
        handles = [axes.barh(0, 0, color=color, label=f"{n} {p}") for (n, p), color in zip(owners, colors, strict=True)]
        legend = axes.legend(
            handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=4, fontsize=8, frameon=False
        )
        for text in legend.get_texts():
            text.set_parse_math(False)

    return Picture(_png(paint, len(rows)), words)


def _owner_color(columns: dict[str, Any], owner: int) -> str:
    """Return the color of an owner by its number; the last one for owners without a number."""
    colors = columns["colors"]
    return _OWNERS[min(colors[owner], len(_OWNERS) - 1)] if owner < len(colors) else _OWNERS[-1]


def icicle(analysis: Analysis) -> tuple[list[Lane], float]:
    """Return the sampled tree as one lane per depth, in µs of a step, and the step's length; empty without samples."""
    columns = host.picture(analysis.host_time)
    if columns is None:
        return [], 0.0
    depth: list[int] = []
    at: list[float] = []
    filled: dict[int, float] = {}
    lanes_by_depth: dict[int, list[Bar]] = {}
    for k, parent in enumerate(columns["parent"]):
        begin = filled.get(parent, at[parent] if parent >= 0 else 0.0)
        filled[parent] = begin + columns["us"][k]
        at.append(begin)
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
        color = _owner_color(columns, columns["owner"][k])
        lanes_by_depth.setdefault(depth[k], []).append(
            Bar(begin, columns["us"][k], color, _short(columns["texts"][columns["name"][k]]))
        )
    return [Lane("", tuple(lanes_by_depth[d])) for d in sorted(lanes_by_depth)[:MAX_DEPTH]], float(columns["step"])


def _short(function: str) -> str:
    """Return a function's name without the functions it is defined in."""
    return function.rpartition("<locals>.")[2] or function


# drawing


def _paint(axes: Axes, rows: Sequence[Lane], begin: float, end: float) -> None:
    inches = (WIDTH - 2.0) / max(end - begin, 1e-9)
    for number, lane in enumerate(rows):
        spans = [(b.begin, b.length) for b in lane.bars]
        colors = [b.color for b in lane.bars]
        axes.broken_barh(spans, (number - 0.42, 0.84), facecolors=colors, edgecolors="white", linewidth=0.3)
        for b in lane.bars:
            left, right = max(b.begin, begin), min(b.begin + b.length, end)
            room = int((right - left) * inches / _LETTER)
            if b.text and room >= 3:
                text = b.text if len(b.text) <= room else f"{b.text[: room - 1]}…"
                axes.text(
                    (left + right) / 2,
                    number,
                    text,
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color=_ink(b.color),
                    parse_math=False,
                )
    axes.set_xlim(begin, end)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [lane.label for lane in rows], fontsize=8, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _ink(color: str) -> str:
    """Return black or white, whichever is more legible on a color."""
    red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "white"


def _ticks(view: Interval) -> list[float]:
    """Return 5 to 10 round times within the view, counted from its begin."""
    size = 10.0 ** np.floor(np.log10(max(view.length, 1)))
    every = next(size * part for part in (0.1, 0.2, 0.5, 1.0) if view.length / (size * part) <= 10)
    return [view.begin + every * k for k in range(int(view.length / every) + 1)]


def _png(paint: Callable[[Any], None], rows: int) -> bytes:
    return _painted(lambda figure: paint(figure.add_subplot()), 1.0 + ROW * rows)


def _painted(paint: Callable[[Any], None], height: float) -> bytes:
    """Return a figure as PNG; `height` in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        hint = "pip install 'matplotlib>=3.8,<4'"
        raise MissingExtra("Pictures are drawn by matplotlib, which isn't installed.", hint) from None
    figure: Figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained", facecolor="white")
    paint(figure)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # names of a trace are in any script
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()
