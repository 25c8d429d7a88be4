"""Paint a step before and after with matplotlib, for notebooks: lanes above, the way to the limit below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syncscan.report.before_after import BeforeAfter
from syncscan.report.shown_names import shown
from syncscan.report.step_lanes import LEVELS, Arrow, Lanes
from syncscan.report.units import duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS = {"host now": 0.0, "device now": 1.4, "host after": 3.0, "device after": 4.1}
"""Middle of each lane, downward."""
HIGH = 0.8
_COLORS = {"works": "#c6ccd4", "rests": "#e3e7eb", "sync": "#c24e00", "call": "#f7cdb0", "input": "#cdd36a"}
_COLORS |= {"pause": "#b3006b", "queue": "#6f6257", "bubble": "#f0b429", "work": "#4d9f92", "after": "#4058b5"}


def lanes(axes: Axes, drawn: BeforeAfter) -> None:
    """Paint the lanes on one ruler: recorded above replayed, waits with arrows to what they cause."""
    _pair(axes, drawn.recorded, "now")
    rows = [*ROWS][: 4 if drawn.fixes else 2]
    for arrow in drawn.causes:
        _arrow(axes, arrow, ROWS["host now"], ROWS["device now"], _COLORS["sync"])
    if drawn.fixes:
        _pair(axes, drawn.shown.lanes, "after")
        for arrow in drawn.shown.moves:
            _arrow(axes, arrow, ROWS["host now"], ROWS["host after"], _COLORS["after"])
        axes.axvline(drawn.shown.lanes.end, color=_COLORS["after"], linestyle="--", linewidth=1)
    axes.set_xlim(0, drawn.length)
    axes.set_ylim(ROWS[rows[-1]] + 0.7, -0.7)
    axes.set_yticks([ROWS[row] for row in rows], rows, fontsize=9)
    axes.xaxis.set_major_formatter(lambda ns, _: duration(ns / 1e3))
    _bare(axes)


def _pair(axes: Axes, lanes: Lanes, when: str) -> None:
    host, device = ROWS[f"host {when}"], ROWS[f"device {when}"]
    for middle, end, color in (
        (host, lanes.end, "rests"),
        (host, lanes.host_end, "works"),
        (device, lanes.end, "rests"),
    ):
        axes.barh(middle, end, height=HIGH, color=_COLORS[color])
    for middle, pieces in ((host, lanes.host), (device, lanes.idle)):
        for piece in pieces:
            axes.barh(middle, piece.end - piece.begin, left=piece.begin, height=HIGH, color=_COLORS[piece.look])
    for shade in lanes.device:
        width = shade.end - shade.begin
        axes.barh(device, width, left=shade.begin, height=HIGH, color=_COLORS["work"], alpha=shade.level / LEVELS)
    for middle in (host, device) if when == "after" else ():
        axes.barh(middle, lanes.end, height=HIGH, fill=False, edgecolor=_COLORS["after"], hatch="////", linewidth=0.6)


def _arrow(axes: Axes, arrow: Arrow, top: float, bottom: float, color: str) -> None:
    start, end = (arrow.begin, top + HIGH / 2), (arrow.end, bottom - HIGH / 2)
    axes.annotate(
        "", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0}
    )
    axes.annotate(arrow.label, xy=end, xytext=(5, 1), textcoords="offset points", fontsize=8, va="bottom")


def falls(axes: Axes, drawn: BeforeAfter) -> None:
    """Paint the step after one fix more each time, with ranges, down to the device's own work."""
    before, labels = drawn.base_us, []
    for number, (scene, fix) in enumerate(zip(drawn.falls, drawn.fixes, strict=False)):
        low, high = scene.range_us
        axes.barh(number, scene.us, height=0.6, color="#dde4fa", edgecolor=_COLORS["after"], hatch="////")
        axes.barh(number, before - scene.us, left=scene.us, height=0.6, fill=False, edgecolor=_COLORS["after"], ls="--")
        axes.errorbar(
            scene.us, number, xerr=[[scene.us - low], [max(0.0, high - scene.us)]], color="#1b232d", capsize=3
        )
        labels.append(f"{shown(fix.title, 44)}: {duration(scene.us)}")
        before = scene.us
    if drawn.limit_us is not None:
        axes.barh(len(labels), drawn.limit_us, height=0.6, color=_COLORS["work"])
        labels.append(f"limit, the device's work: {duration(drawn.limit_us)}")
    axes.set_yticks(range(len(labels)), labels, fontsize=8, parse_math=False)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, 1.02 * max([drawn.base_us, *(scene.range_us[1] for scene in drawn.falls)]))
    axes.xaxis.set_major_formatter(lambda us, _: duration(us))
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
