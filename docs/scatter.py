"""Draw what was projected beside what was measured, with ranges, from the tables of the page on how well it does.

A test holds those tables to what their commands print. All points are a step after a change, as a part of the step
before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
BENCHMARKS = DOCS.parent / "benchmarks"
SHOWN = (DOCS / "how-well.md", BENCHMARKS / "joint" / "states.md", BENCHMARKS / "projected.md")
"""The page, and the tables that it includes."""
SYNCS, HABITS, LAUNCHES = "syncs removed", "habits dropped", "network compiled"
COLORS = {SYNCS: ("#c24e00", "#f0803c"), HABITS: ("#8f3a78", "#e39ac8"), LAUNCHES: ("#2b7467", "#56b3a4")}
"""Color of each kind on a light and on a dark ground."""
SIZE, LEFT, TOP, FOOT = 560, 64, 40, 96
"""Length of both axes, and room around them, px."""
MOST = 1.4
"""Largest part of the step that is drawn; what lies beyond is counted below the drawing."""
SLACK = {"whatif": 0.02, "joint": 0.06}
"""How far a measurement may be off, as a part of the step, by the command of its table."""
_TABLE = re.compile(r"<!-- table: python -m benchmarks\.([\w.]+)[^\n]*-->\n(.*?)<!-- /table -->", re.S)
_JOINT = re.compile(r"([\d.]+) \(([\d.]+) to ([\d.]+)\): \**([\d.]+)")
_TIME = re.compile(r"([\d.]+) (µs|ms|s)")
_UNITS = {"µs": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True)
class Point:
    """A change: what was measured, and what was projected with its range."""

    kind: str
    name: str
    measured: float
    projected: float
    low: float
    high: float
    slack: float = 0.0

    @property
    def inside(self) -> bool:
        """Whether the measured value lies in the range."""
        return self.low - self.slack <= self.measured <= self.high + self.slack


def tables() -> str:
    """Return the text of the files that show the tables."""
    return "".join(path.read_text(encoding="utf-8") for path in SHOWN)


def points(page: str) -> Iterator[Point]:
    """Yield the points of the page's tables."""
    readers = {"whatif": _of_syncs, "habits": _of_habits, "host_stalls": _of_stalls, "joint.score": _of_states}
    for name, table in _TABLE.findall(page):
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
        if name in readers and rows and len(rows[0]) > 4:
            yield from readers[name](rows)


def _of_syncs(rows: list[list[str]]) -> Iterator[Point]:
    for step, without, measured, projected, limits, _ in rows:
        low, high = map(float, limits.split(" to "))
        name = f"{step.strip('| ')}, {without}"
        yield Point(SYNCS, name, float(measured), float(projected), low, high, SLACK["whatif"])


def _of_habits(rows: list[list[str]]) -> Iterator[Point]:
    for habit, _, now, predicted, measured in rows:
        if "at best" not in predicted:
            with_it, then = _ms(now)[0], _ms(measured)[0]
            best, low, high = (ms / with_it for ms in _ms(predicted))
            yield Point(HABITS, habit.strip("|` "), then / with_it, best, low, high)


def _of_stalls(rows: list[list[str]]) -> Iterator[Point]:
    for program, _, _, projected, _, measured, _ in rows:
        best, low, high = (1 - float(x) / 100 for x in re.findall(r"([\d.]+)%", projected))
        yield Point(HABITS, program.strip("|` "), 1 - float(measured.rstrip("%")) / 100, best, high, low)


def _of_states(rows: list[list[str]]) -> Iterator[Point]:
    kinds = (LAUNCHES, LAUNCHES, SYNCS, LAUNCHES, LAUNCHES)
    for program, _, *cells in rows:
        for kind, cell in zip(kinds, cells, strict=True):
            if match := _JOINT.search(cell):
                best, low, high, measured = map(float, match.groups())
                yield Point(kind, program.strip("|` "), measured, best, low, high, SLACK["joint"])


def _ms(text: str) -> list[float]:
    return [float(number) * _UNITS[unit] for number, unit in _TIME.findall(text)]


def svg(page: str) -> str:
    """Return the drawing as an SVG document that follows the viewer's theme."""
    drawn = [p for p in points(page) if max(p.measured, p.projected) <= MOST]
    beyond = sum(1 for _ in points(page)) - len(drawn)
    inside = sum(p.inside for p in drawn)
    title = f"{inside} of {len(drawn)} measured steps lie in the projected range"
    wide, high = LEFT + SIZE + 24, TOP + SIZE + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        'role="img">'
        f"<title>{title}</title><desc>Each point is a change; right is what was measured, up what was projected.</desc>"
        f'<style>{_style()}</style><rect class="ground" width="{wide}" height="{high}"/>'
        f'<text class="title" x="{LEFT}" y="24">{title}</text>'
    ]
    parts += [*_axes(), *map(_drawn, drawn), *_words(drawn, beyond), "</svg>\n"]
    return "\n".join(parts)


def _x(value: float) -> str:
    return f"{LEFT + value / MOST * SIZE:.1f}"


def _y(value: float) -> str:
    return f"{TOP + SIZE - min(value, MOST) / MOST * SIZE:.1f}"


def _axes() -> Iterator[str]:
    for k in range(0, 8):
        at = k * 0.2
        yield f'<line class="grid" x1="{_x(at)}" x2="{_x(at)}" y1="{_y(0)}" y2="{_y(MOST)}"/>'
        yield f'<line class="grid" x1="{_x(0)}" x2="{_x(MOST)}" y1="{_y(at)}" y2="{_y(at)}"/>'
        yield f'<text class="muted" x="{_x(at)}" y="{TOP + SIZE + 18}" text-anchor="middle">{at:.1f}</text>'
        yield f'<text class="muted" x="{LEFT - 8}" y="{_y(at)}" dy="4" text-anchor="end">{at:.1f}</text>'
    yield f'<line class="same" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(MOST)}" y2="{_y(MOST)}"/>'
    across, down, beside = LEFT + SIZE / 2, TOP + SIZE + 38, TOP + SIZE / 2
    yield f'<text x="{across}" y="{down}" text-anchor="middle">measured: step after / step before</text>'
    turned = f'transform="rotate(-90 18 {beside})" x="18" y="{beside}"'
    yield f'<text {turned} text-anchor="middle">projected, with its range</text>'


def _drawn(point: Point) -> str:
    look, x = list(COLORS).index(point.kind), _x(point.measured)
    words = f"{point.name}: measured {point.measured:.2f}, projected {point.projected:.2f}"
    ends = f"{point.low:.2f} to {point.high:.2f}"
    return (
        f'<g class="kind{look}{"" if point.inside else " out"}"><title>{words} ({ends})</title>'
        f'<line x1="{x}" x2="{x}" y1="{_y(point.low)}" y2="{_y(point.high)}"/>'
        f'<circle cx="{x}" cy="{_y(point.projected)}" r="4"/></g>'
    )


def _words(drawn: list[Point], beyond: int) -> Iterator[str]:
    x, y = LEFT, TOP + SIZE + 62
    for look, kind in enumerate(COLORS):
        count = sum(p.kind == kind for p in drawn)
        yield f'<g class="kind{look}"><circle cx="{x + 5}" cy="{y - 4}" r="4"/></g>'
        yield f'<text x="{x + 15}" y="{y}">{kind} ({count})</text>'
        x += 190
    more = f"; {beyond} more lie beyond the axes" if beyond else ""
    note = f"Hollow: outside of the range. On the diagonal, both agree{more}."
    yield f'<text class="muted" x="{LEFT}" y="{y + 22}">{note}</text>'


def _style() -> str:
    text = (
        "text {{ font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: {ink}; }}"
        " .title {{ font-size: 16px; font-weight: 650; }} .muted {{ fill: {muted}; }} .ground {{ fill: {ground}; }}"
        " .grid {{ stroke: {grid}; }} .same {{ stroke: {muted}; stroke-dasharray: 4 3; }}"
        " circle {{ stroke-width: 1.5; }} line {{ stroke-width: 1; }}{kinds} .out circle {{ fill: {ground}; }}"
    )
    rule = " .kind{0} line {{ stroke: {1}; opacity: .45; }} .kind{0} circle {{ fill: {1}; stroke: {1}; }}"
    looks = []
    for dark in (0, 1):
        kinds = "".join(rule.format(k, colors[dark]) for k, colors in enumerate(COLORS.values()))
        ink, muted, ground, grid = (
            ("#e3e7ec", "#98a3b1", "#1a1e23", "#2d343c") if dark else ("#1b232d", "#5a6572", "#ffffff", "#eceff2")
        )
        looks.append(text.format(ink=ink, muted=muted, ground=ground, grid=grid, kinds=kinds))
    return f"{looks[0]} @media (prefers-color-scheme: dark) {{ {looks[1]} }}"
