"""Write a step before and after its fixes as an SVG document, with the way from one to the other.

The file holds everything it shows, follows the viewer's theme, and runs no script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis
from syncscan.model.picture import Picture
from syncscan.report import before_after_svg
from syncscan.report.assets import asset
from syncscan.report.before_after import BeforeAfter, before_after
from syncscan.report.shown_names import shown
from syncscan.report.story import Story, story_of
from syncscan.report.tiles import StepBar, falls

WIDTH, LEFT, RIGHT, MARGIN = 960, 92, 74, 16
"""Width of the picture, room for the lanes' labels and for the bars' values, and its margin, px."""
LETTER = 6.6
"""Approximate width of a letter, px, by which text is cut."""
_COLORS = re.compile(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);")
_TEXT = (
    "text { font: 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; fill: var(--ink); }\n"
)
_RULES = (
    ".ground { fill: var(--panel); }\n.muted { fill: var(--muted); }\n.after { fill: var(--projected); }\n"
    ".title { font-size: 20px; font-weight: 650; }\n.value { font-weight: 620; }\n"
    ".projected { fill: url(#ba-lines); stroke: var(--projected); }\n.work { fill: var(--work); }\n"
    ".saved { fill: none; stroke: var(--projected); stroke-dasharray: 3 2; }\n.whisker { stroke: var(--ink); }\n"
)


def render(analysis: Analysis) -> str:
    """Return the picture as an SVG document; where no step can be replayed, it holds the verdict and says so."""
    story = story_of(analysis)
    return _document(before_after(analysis, story), story)


def _document(drawn: BeforeAfter | None, story: Story) -> str:
    parts = list(_draw(drawn, story)) if drawn else [_line(story.reason or story.summary, 62), _line(_WHY_NOT, 84)]
    height = parts.pop() if drawn else 104
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img">'
        "<title>{2}</title><desc>{3}</desc><style>{4}</style><defs>{5}</defs>"
        '<rect class="ground" width="{0}" height="{1}"/>'
    )
    words = before_after_svg.spoken(drawn) if drawn else _WHY_NOT
    style, defs = Markup(_style()), Markup(before_after_svg.DEFS)
    opening = Markup(head).format(WIDTH, height, f"{story.verdict}.", words, style, defs)
    title = Markup('<text class="title" x="{}" y="34">{}.</text>').format(MARGIN, story.verdict)
    return f"{opening}{title}{Markup().join(p for p in parts if isinstance(p, str))}</svg>\n"


def picture(analysis: Analysis) -> Picture:
    """Return the picture with its text alternative; a UsageError where no step can be replayed."""
    story = story_of(analysis)
    drawn = before_after(analysis, story)
    if drawn is None:
        raise UsageError("There is nothing to draw: no step of this trace can be replayed.", "Record a step on a GPU.")
    return Picture(_document(drawn, story), f"{story.verdict} · {before_after_svg.spoken(drawn)}.")


_WHY_NOT = "No step of this trace can be replayed, so none is drawn."


def _style() -> str:
    """Return the style with the report's colors put in, since few viewers of SVG know variables."""
    text = f"{_TEXT}{_RULES}{asset('before_after.css')}"
    light = {name: (one, other) for name, one, other in _COLORS.findall(asset("report.css"))}

    def colored(which: int) -> str:
        return re.sub(r"var\(--([\w-]+)\)", lambda m: light[m.group(1)][which], text)

    return f"{colored(0)}@media (prefers-color-scheme: dark) {{\n{colored(1)}}}\n"


def _line(text: str, y: float, look: str = "muted", x: float = MARGIN) -> Markup:
    room = int((WIDTH - x - MARGIN) / LETTER)
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(look, x, y, shown(text, room))


def _draw(drawn: BeforeAfter, story: Story) -> Iterator[Markup | int]:
    """Yield the picture's parts from the top, and at last its height."""
    yield _line(drawn.shown.sentence if drawn.fixes else story.summary, 56, "after value" if drawn.fixes else "muted")
    top, wide = 72, WIDTH - LEFT - MARGIN
    labels = ("host now", "device now", "host after", "device after") if drawn.fixes else ("host now", "device now")
    for label, y in zip(labels, before_after_svg.ROWS.values(), strict=False):
        look = "after" if label.endswith("after") else "muted"
        text = '<text class="{}" x="{}" y="{}" text-anchor="end">{}</text>'
        yield Markup(text).format(look, LEFT - 8, top + y + 12, label)
    high = before_after_svg.HEIGHT if drawn.fixes else before_after_svg.RECORDED
    plot = '<svg x="{}" y="{}" width="{}" height="{}">{}</svg>'
    yield Markup(plot).format(LEFT, top, wide, high, before_after_svg.plot(drawn, only_shown=True))
    bars = falls(drawn, max([drawn.base_us, *(scene.us for scene in drawn.falls)]))
    yield from _falls(bars, [fix.where for fix in drawn.fixes], top + high + 10)
    foot = top + high + 10 + FALL * len(bars)
    rows = _rows(before_after_svg.key(drawn))
    for number, entries in enumerate(rows):
        yield from _key(entries, foot + 16 + 18 * number)
    foot += 18 * len(rows)
    yield _line(drawn.caption, foot + 18, x=LEFT)
    yield foot + 32


FALL = 32
"""Height of a bar with its label, px."""


def _falls(bars: Sequence[StepBar], places: Sequence[str], top: int) -> Iterator[Markup]:
    wide = WIDTH - LEFT - MARGIN - RIGHT
    for number, bar in enumerate(bars):
        y = top + number * FALL
        place = places[number] if number < len(places) else ""
        yield _line(" · ".join(part for part in (bar.label, place) if part), y + 11, x=LEFT)
        rect = '<rect class="{}" x="{}%" y="0" width="{}%" height="11"/>'
        shapes = [Markup(rect).format(p.look, p.x, p.width) for p in bar.parts]
        line = '<line class="whisker" x1="{}%" x2="{}%" y1="{}" y2="{}"/>'
        if bar.range:
            low, high = bar.range
            shapes += [Markup(line).format(low, high, 5.5, 5.5), *(Markup(line).format(e, e, 1, 10) for e in bar.range)]
        plot = '<svg x="{}" y="{}" width="{}" height="11" overflow="visible">{}</svg>'
        yield Markup(plot).format(LEFT, y + 16, wide, Markup().join(shapes))
        look = "value after" if bar.projected else "value"
        yield Markup('<text class="{}" x="{}" y="{}">{}</text>').format(look, LEFT + wide + 10, y + 26, bar.value)


def _rows(entries: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    rows: list[list[tuple[str, str]]] = []
    used = float(WIDTH)
    for entry in entries:
        wide = 30 + LETTER * len(entry[1])
        if used + wide > WIDTH - LEFT - MARGIN:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += wide
    return rows


def _key(entries: Sequence[tuple[str, str]], y: int) -> Iterator[Markup]:
    x = float(LEFT)
    for look, label in entries:
        swatch = '<rect class="{}" x="{}" y="{}" width="12" height="9"/><text class="muted" x="{}" y="{}">{}</text>'
        yield Markup(swatch).format(before_after_svg.SHAPES[look], x, y - 8, x + 16, y, label)
        x += 30 + LETTER * len(label)
