"""Draw a step before and after as SVG: for a page, whose script shows the chosen fixes, and as a file of its own.

Places are in percent of the ruler, so that one drawing fits a desktop and a phone; times of less than a part of the
ruler are drawn together, as shades.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from syncscan.report.before_after import BeforeAfter, Scene
from syncscan.report.shown_names import shown
from syncscan.report.step_lanes import BINS, LEVELS, Arrow, Lanes, Piece, Shade
from syncscan.report.units import duration

HEIGHT, RECORDED = 138, 76
"""Height of the drawing, and of its part as recorded, px."""
ROWS = {"host": 22, "device": 54, "host after": 90, "device after": 116}
"""Top of each lane, px."""
ROW = 16
MAX_PIECES = 80
"""Times on a lane with a shape of their own, the longest first; the others are drawn together."""
NARROW = 0.003
"""Part of the ruler below which a time is drawn together with others."""
APART = 13.0
"""Least distance of two arrows' labels, in percent of the ruler."""


DEFS = (
    '<pattern id="ba-lines" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="ba-line" width="1.6" height="6"/></pattern>'
) + "".join(
    f'<marker id="ba-{look}-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path class="ba-{look}-tip" d="M0 0.5 8 4 0 7.5z"/></marker>'
    for look in ("idle", "moved")
)
"""Hatching and tips of arrows, for the drawing's `defs`."""


def plot(drawn: BeforeAfter, only_shown: bool = False) -> Markup:
    """Return the drawing's shapes, a group for each scene; the one shown first is the only one not hidden."""
    parts = [*_ruler(drawn), *_recorded(drawn)]
    for scene in (drawn.shown,) if only_shown else drawn.scenes:
        mask, hidden = sum(1 << k for k in scene.fixes), "" if scene is drawn.shown else " hidden"
        head = Markup('<g class="scene" data-set="{}" data-says="{}"{}>').format(mask, scene.sentence, Markup(hidden))
        parts.append(head + Markup().join(_scene(drawn, scene)) + Markup("</g>"))
    return Markup("\n").join(parts)


def spoken(drawn: BeforeAfter) -> str:
    waits = sum(p.end - p.begin for p in drawn.recorded.host if p.look == "sync")
    idle = sum(p.end - p.begin for p in drawn.recorded.idle)
    words = [f"{drawn.name.capitalize()} over {duration(drawn.recorded.end / 1e3)}, host above device"]
    words += [f"the host waits {duration(waits / 1e3)}"] if waits else []
    words += [f"the device is then idle for {duration(idle / 1e3)}"] if idle else []
    says = drawn.shown.sentence
    after = [f"after the fixes: {says}" if says else "below it, the step after the change"] if drawn.fixes else []
    return shown("; ".join([*words, *after]), 600)


# the shapes


def _at(ns: float, drawn: BeforeAfter) -> str:
    return f"{max(0.0, min(100.0, 100.0 * ns / drawn.length)):.2f}%"


def _ruler(drawn: BeforeAfter) -> Iterator[Markup]:
    step = _tick(drawn.length)
    for number in range(int(drawn.length / step) + 1):
        x = _at(number * step, drawn)
        yield Markup('<line class="ba-grid" x1="{0}" x2="{0}" y1="16" y2="{1}"/>').format(x, HEIGHT)
        if number * step <= 0.93 * drawn.length:
            label = "0" if not number else duration(number * step / 1e3)
            odd = Markup(" ba-odd") if number % 2 else ""
            yield Markup('<text class="ba-tick{}" x="{}" dx="3" y="11">{}</text>').format(odd, x, label)


def _tick(length: float) -> float:
    """Return a round distance of the ruler's ticks, ns: four to eight of them."""
    power = 10.0 ** (len(str(int(length))) - 2)
    return next(power * m for m in (1, 2, 2.5, 5, 10, 20) if length / (power * m) <= 7)


def _recorded(drawn: BeforeAfter) -> Iterator[Markup]:
    yield from _lanes(drawn, drawn.recorded, ROWS["host"], ROWS["device"])
    least = -APART
    for arrow in sorted(drawn.causes, key=lambda a: a.end):
        far = 100.0 * arrow.end / drawn.length
        yield _arrow(
            drawn, arrow, ROWS["host"] + ROW, ROWS["device"] - 1, ROWS["device"] - 4 if far - least >= APART else None
        )
        least = far if far - least >= APART else least


def _scene(drawn: BeforeAfter, scene: Scene) -> Iterator[Markup]:
    if not scene.fixes:
        return
    yield from _lanes(drawn, scene.lanes, ROWS["host after"], ROWS["device after"])
    for top in () if drawn.measured else (ROWS["host after"], ROWS["device after"]):
        rect = '<rect class="ba-hatch" x="0" y="{}" width="{}" height="{}"/>'
        yield Markup(rect).format(top, _at(scene.lanes.end, drawn), ROW)
    least = -APART
    for arrow in sorted(scene.moves, key=lambda a: a.end):
        far = 100.0 * arrow.end / drawn.length
        top, bottom = ROWS["host"] + ROW, ROWS["host after"] - 1
        yield _arrow(drawn, arrow, top, bottom, bottom - 4 if far - least >= APART else None)
        least = far if far - least >= APART else least
    line = '<line class="ba-end" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>'
    yield Markup(line).format(_at(scene.lanes.end, drawn), ROWS["host after"] - 3, HEIGHT)


def _lanes(drawn: BeforeAfter, lanes: Lanes, host: int, device: int) -> Iterator[Markup]:
    ground = '<rect class="{}" x="0" y="{}" width="{}" height="{}"/>'
    yield Markup(ground).format("ba-rests", host, _at(lanes.end, drawn), ROW)
    yield Markup(ground).format("ba-works", host, _at(lanes.host_end, drawn), ROW)
    yield Markup(ground).format("ba-rests", device, _at(lanes.end, drawn), ROW)
    yield from _pieces(drawn, lanes.host, host)
    yield from _pieces(drawn, lanes.idle, device)
    yield _shades(lanes.device, device, drawn, "work")


def _pieces(drawn: BeforeAfter, pieces: Sequence[Piece], top: int) -> Iterator[Markup]:
    """Yield a rectangle for each long piece, and one shape for all the short ones of a look."""
    wide = [p for p in pieces if p.end - p.begin >= NARROW * drawn.length]
    wide = sorted(sorted(wide, key=lambda p: p.begin - p.end)[:MAX_PIECES], key=lambda p: p.begin)
    rect = '<rect class="ba-{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>'
    for p in wide:
        yield Markup(rect).format(
            p.look, _at(p.begin, drawn), top, _at(p.end - p.begin, drawn), ROW, shown(p.label, 200)
        )
    for look in dict.fromkeys(p.look for p in pieces):
        bins = {int(p.begin / drawn.length * BINS) for p in pieces if p.look == look and p not in wide}
        part = drawn.length / BINS
        yield _shades([Shade(k * part, (k + 1) * part, 2) for k in sorted(bins)], top, drawn, look)


def _shades(shades: Sequence[Shade], top: int, drawn: BeforeAfter, look: str) -> Markup:
    """Return one path a level: a part that is half covered is drawn half as strong."""
    paths = []
    for level in range(1, LEVELS + 1):
        spans = [(s.begin * BINS / drawn.length, s.end * BINS / drawn.length) for s in shades if s.level == level]
        d = "".join(f"M{a:.4g} 0h{b - a:.4g}v1h-{b - a:.4g}z" for a, b in spans)
        if d:
            paths.append(Markup('<path class="ba-{}" fill-opacity="{}" d="{}"/>').format(look, level / LEVELS, d))
    if not paths:
        return Markup()
    svg = '<svg x="0" y="{}" width="100%" height="{}" viewBox="0 0 {} 1" preserveAspectRatio="none">{}</svg>'
    return Markup(svg).format(top, ROW, BINS, Markup().join(paths))


def _arrow(drawn: BeforeAfter, arrow: Arrow, top: int, bottom: int, label: int | None) -> Markup:
    x1, x2 = _at(arrow.begin, drawn), _at(arrow.end, drawn)
    line = '<line class="ba-{0}-arrow" x1="{1}" x2="{2}" y1="{3}" y2="{4}" marker-end="url(#ba-{0}-tip)"/>'
    drawn_line = Markup(line).format(arrow.look, x1, x2, top, bottom)
    if label is None:
        return drawn_line
    side = "end" if arrow.end > 0.8 * drawn.length else "start"
    text = '<text class="ba-note" x="{}" y="{}" dx="{}" text-anchor="{}">{}</text>'
    return drawn_line + Markup(text).format(x2, label, -6 if side == "end" else 6, side, arrow.label)


# what stands around the drawing


KEYS = (
    ("host", "host works", "works"),
    ("sync", "host waits in a sync", "sync"),
    ("call", "rest of the call", "call"),
    ("input", "host is in its loader", "input"),
    ("pause", "host time that a fix removes", "pause"),
    ("queue", "host waits: the launch queue is full", "queue"),
    ("idle", "host is done: it runs ahead", "ahead"),
    ("work", "device works", "work"),
    ("bubble", "device idle after a sync", "bubble"),
    ("hatch", "replayed", "hatch"),
)
"""Swatch, meaning and look of what can be drawn."""


SHAPES = {"host": "ba-works", "idle": "ba-rests", "hatch": "ba-hatch"} | {
    look: f"ba-{look}" for look in ("sync", "call", "input", "pause", "queue", "work", "bubble")
}
"""Class of a swatch's shape."""


def key(drawn: BeforeAfter) -> list[tuple[str, str]]:
    lanes = [drawn.recorded, *(s.lanes for s in drawn.scenes)]
    looks = {p.look for one in lanes for p in (*one.host, *one.idle)} | {"works"}
    looks |= {"work"} if any(one.device for one in lanes) else set()
    looks |= {"ahead"} if any(one.host_end < 0.99 * one.end for one in lanes) else set()
    looks |= {"hatch"} if drawn.fixes and not drawn.measured else set()
    return [(swatch, label) for swatch, label, look in KEYS if look in looks]
