"""Draw one step as SVG: for a page, in two widths, and as a file of its own.

The file holds everything it shows, follows the viewer's theme, and runs no script.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis, Picture
from syncscan.model.interval import Cover
from syncscan.report import front, step_picture
from syncscan.report.blocks import Figure
from syncscan.report.front import Front
from syncscan.report.page import asset
from syncscan.report.printable import shown
from syncscan.report.step_picture import After, Lane, Part, StepPicture, between
from syncscan.report.units import duration

WIDE, PHONE = 620, 362
"""Widths that a page draws it in, px."""
ROW, STEP, TOP = 22, 30, 22
"""Height of a row, distance of two, and the top of the first, px."""
LETTER = 6.7
"""Approximate width of a letter, px."""
BOLD = 8.2
"""Width of a bold one."""
LEVELS = 4
"""Shades of a pixel by how much of it the device works."""
STYLES = ("step_picture.css",)
_COLORS = re.compile(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);")
_TEXT = "text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; }\n"
_PATTERN = (
    '<pattern id="{}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="sp-hatch" width="6" height="6"/><rect class="sp-line" width="2" height="6"/></pattern>'
)


class _Ruler:
    """Places on a picture's ruler, px."""

    def __init__(self, picture: StepPicture, width: int) -> None:
        self.width = width
        self.left = (62 if width > PHONE else 52) + 22 * any(len(lane.name) > 8 for lane in picture.lanes)
        self.scale = (width - self.left - (38 if width > PHONE else 29)) / picture.longest_us

    def x(self, us: float) -> float:
        return round(self.left + us * self.scale, 1)


def height(picture: StepPicture) -> int:
    return TOP + STEP * len(picture.lanes) + (20 + STEP * len(picture.after) if picture.after else 0)


def plot(picture: StepPicture, width: int = WIDE, pattern: str = "hatch") -> Markup:
    """Return the picture's shapes; a change's row is a group, whose `data-change` is its number."""
    ruler, high = _Ruler(picture, width), height(picture)
    parts = [Markup("<defs>") + Markup(_PATTERN).format(pattern) + Markup("</defs>"), *_ticks(picture, ruler)]
    for number, lane in enumerate(picture.lanes):
        parts += _lane(lane, ruler, TOP + STEP * number)
    if picture.after:
        below = TOP + STEP * len(picture.lanes)
        parts.append(_now(picture, ruler, below, high))
        for number, row in enumerate(picture.after):
            parts.append(_after(row, number, ruler, below + 20 + STEP * number, pattern))
    return Markup("").join(parts)


def figure(picture: StepPicture, title: str) -> Figure:
    return Figure(title, lambda: in_page(picture), STYLES)


def in_page(picture: StepPicture) -> Markup:
    """Return the picture twice, for a wide window and for a phone; the style shows one of them."""
    svg = '<svg class="sp sp-{0}" viewBox="0 0 {1} {2}" role="group" aria-label="{3}">{4}</svg>'
    drawn = [
        Markup(svg).format(name, width, height(picture), shown(picture.spoken, 600), plot(picture, width, name))
        for name, width in (("wide", WIDE), ("phone", PHONE))
    ]
    return Markup('<div class="sp-box">{}</div>').format(Markup("").join(drawn))


# the shapes


def _ticks(picture: StepPicture, ruler: _Ruler) -> Iterator[Markup]:
    step = _tick(picture.longest_us * (1 if ruler.width > PHONE else 2))
    for number in range(int(picture.longest_us / step) + 1):
        x = ruler.x(number * step)
        last = (number + 1) * step > picture.longest_us
        size, unit = _unit(picture.longest_us)
        value = f"{number * step / size:g}{f' {unit}' if number and last else ''}"
        line = '<line class="sp-grid" x1="{0}" x2="{0}" y1="16" y2="{1}"/>'
        text = '<text class="sp-soft" x="{}" y="11" text-anchor="{}">{}</text>'
        yield Markup(line).format(x, height(picture) - 2)
        yield Markup(text).format(x, "middle" if number else "start", value)


def _tick(us: float) -> float:
    """Return a round distance of the ruler's ticks, µs: two to five of them."""
    power = 10.0 ** np.floor(np.log10(us))
    return float(next(power * m for m in (0.2, 0.5, 1.0, 2.0, 5.0) if us / (power * m) <= 5))


def _unit(us: float) -> tuple[float, str]:
    return (1e6, "s") if us >= 999.5e3 else (1e3, "ms") if us >= 999.5 else (1.0, "µs")


def _lane(lane: Lane, ruler: _Ruler, y: int) -> Iterator[Markup]:
    rect = '<rect class="sp-{}" x="{}" y="{}" width="{}" height="{}"/>'
    yield Markup('<text class="sp-soft" x="{}" y="{}" text-anchor="end">{}</text>').format(
        ruler.left - 8, y + 15, lane.name
    )
    yield Markup(rect).format(lane.ground, ruler.x(0.0), y, round(lane.end * ruler.scale, 1), ROW)
    yield from _shades(lane.work, ruler, y)
    for part in lane.parts:
        yield _part(part, ruler, y)
    if lane.texts:
        yield _said(lane, ruler, y)


def _part(part: Part, ruler: _Ruler, y: int) -> Markup:
    wide = max(0.5, (part.end - part.begin) * ruler.scale)
    rect = '<rect class="sp-{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'
    name = shown(part.texts[0], 120) if part.texts else ""
    gap = 1.5 if part.look in ("host", "input") and wide > 3 else 0.0
    drawn = Markup(rect).format(part.look, ruler.x(part.begin), y, round(wide - gap, 1), ROW, name)
    text = _fitting(part.texts, wide)
    place = '<text class="sp-on-{}" x="{}" y="{}">{}</text>'
    return drawn + Markup(place).format(part.look, ruler.x(part.begin) + 6, y + 15, text) if text else drawn


def _fitting(texts: Sequence[str], wide: float) -> str:
    return next((text for text in texts if LETTER * len(text) + 10 <= wide), "")


def _shades(work: Sequence[tuple[float, float]], ruler: _Ruler, y: int) -> Iterator[Markup]:
    """Yield one path a level: a pixel that is half covered is drawn half as strong."""
    if not work:
        return
    begins, ends = (np.array(column) * ruler.scale * 1000 for column in zip(*work, strict=True))
    edges = np.arange(0, int(ends.max() / 1000) + 2) * 1000
    covered = Cover(begins.astype(np.int64), ends.astype(np.int64)).within(edges[:-1], edges[1:]) / 1000
    levels = np.ceil(np.round(covered, 2) * LEVELS).astype(int)
    cuts = np.flatnonzero(np.diff(levels, prepend=-1, append=-1)).tolist()
    spans = [(a, b, int(levels[a])) for a, b in itertools.pairwise(cuts)]
    for level in range(1, LEVELS + 1):
        d = "".join(f"M{ruler.left + a} {y}h{b - a}v{ROW}h-{b - a}z" for a, b, own in spans if own == level)
        if d:
            yield Markup('<path class="sp-work" fill-opacity="{}" d="{}"/>').format(level / LEVELS, d)


def _said(lane: Lane, ruler: _Ruler, y: int) -> Markup:
    """Return what is said of a lane, in its longest time of rest or of work that isn't named, or else over all."""
    taken = [(part.begin, part.end) for part in lane.parts]
    rests = between([*lane.work, *taken], lane.end)
    works = between([*((a, b) for a, b in rests if (b - a) * ruler.scale > 1), *taken], lane.end) if lane.work else []
    for spans, look in ((works, "work"), (rests, lane.ground), (between(taken, lane.end), "over")):
        begin, end = max(spans, key=lambda span: span[1] - span[0], default=(0.0, 0.0))
        if text := _fitting(lane.texts, (end - begin) * ruler.scale):
            return Markup('<text class="sp-on-{}" x="{}" y="{}">{}</text>').format(
                look, ruler.x(begin) + 6, y + 15, text
            )
    return Markup("")


def _now(picture: StepPicture, ruler: _Ruler, y: int, high: int) -> Markup:
    x = ruler.x(picture.now_us)
    line = '<line class="sp-now" x1="{0}" x2="{0}" y1="18" y2="{1}"/>'
    text = '<text class="sp-projected" x="{}" y="{}" text-anchor="end">now {}</text>'
    return Markup(line).format(x, high - 4) + Markup(text).format(x - 4, y + 10, duration(picture.now_us))


def _after(row: After, number: int, ruler: _Ruler, y: int, pattern: str) -> Markup:
    low, high = (ruler.x(us) for us in row.range_us)
    middle, end = y + ROW / 2, ruler.x(row.us)
    free = max(end, high) + 9
    x, anchor = (free, "start") if free + BOLD * len(row.takes) <= ruler.width else (min(end, low) - 8, "end")
    return Markup(
        '<g class="sp-after" data-change="{}" data-left="{}" data-scale="{:.6g}" data-width="{}">'
        '<text class="sp-soft" x="{}" y="{}" text-anchor="end">{}</text>'
        '<rect class="sp-bar" x="{}" y="{}" width="{}" height="{}" fill="url(#{})"/>'
        '<path class="sp-whisker" d="M{} {}H{}M{} {}v10M{} {}v10"/>'
        '<text class="sp-value" x="{}" y="{}" text-anchor="{}">{}</text></g>'
    ).format(
        *(number, ruler.left, ruler.scale, ruler.width, ruler.left - 8, y + 15, row.name),
        *(ruler.left, y, round(row.us * ruler.scale, 1), ROW, pattern),
        *(low, middle, high, low, middle - 5, high, middle - 5),
        *(x, y + 15, anchor, row.takes),
    )


# a file of its own


MARGIN = 16
_WHY_NOT = "No step of this trace can be replayed, so none is drawn."


def render(analysis: Analysis) -> str:
    """Return the picture as an SVG document; where no step can be replayed, it says so."""
    first = front.front_of(analysis)
    return _document(first, step_picture.of(analysis, first))


def picture(analysis: Analysis) -> Picture:
    """Return the picture with its text alternative; a UsageError where no step can be replayed."""
    first = front.front_of(analysis)
    drawn = step_picture.of(analysis, first)
    if drawn is None:
        raise UsageError("There is nothing to draw: no step of this trace can be replayed.", "Record a step on a GPU.")
    return Picture(_document(first, drawn), f"{first.verdict} {drawn.spoken}.")


def _document(first: Front, drawn: StepPicture | None) -> str:
    lead, _, why = first.verdict.partition(": ")
    says = " ".join(part for part in (why[:1].upper() + why[1:], first.together, first.hidden) if part)
    high = 66 + (height(drawn) if drawn else 30)
    inside = plot(drawn) if drawn else _line(_WHY_NOT, 16, "sp-soft")
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img">'
        "<title>{2}</title><desc>{3}</desc><style>{4}</style>"
        '<rect class="sp-ground" width="{0}" height="{1}"/>'
    )
    opening = Markup(head).format(
        WIDE + 2 * MARGIN, high, first.verdict, drawn.spoken if drawn else _WHY_NOT, Markup(_style())
    )
    title = _line(lead.rstrip(".") + ".", 32, "sp-title") + _line(says, 52, "sp-soft")
    svg = Markup('<svg x="{}" y="62" width="{}" height="{}">{}</svg>').format(MARGIN, WIDE, high - 62, inside)
    return f"{opening}{title}{svg}</svg>\n"


def _line(text: str, y: int, look: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(look, MARGIN, y, shown(text, int(WIDE / 6)))


def _style() -> str:
    """Return the style with the report's colors put in, since few viewers of SVG know variables."""
    text = f"{_TEXT}{asset('step_picture.css')}"
    light = {name: (one, other) for name, one, other in _COLORS.findall(asset("report.css"))}

    def colored(which: int) -> str:
        return re.sub(r"var\(--([\w-]+)\)", lambda m: light[m.group(1)][which], text)

    return f"{colored(0)}@media (prefers-color-scheme: dark) {{\n{colored(1)}}}\n"
