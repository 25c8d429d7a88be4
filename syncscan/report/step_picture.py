"""Put one step before and after a change into a page without a script: as projected, or as recorded twice."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from syncscan.model.analysis import Analysis
from syncscan.model.projection import Projection, Schedule
from syncscan.report import before_after_svg, step_lanes
from syncscan.report.assets import asset, template
from syncscan.report.before_after import BeforeAfter, Choice, Scene
from syncscan.report.blocks import Figure
from syncscan.report.phrases import replayed
from syncscan.report.timeline_intervals import recorded_step, step_name
from syncscan.report.units import duration, percent, range_of, within

STYLES = ("before_after.css", "step_picture.css")


def style() -> Markup:
    return Markup().join(map(asset, STYLES))


def figure(drawn: BeforeAfter, title: str) -> Figure:
    return Figure(title, lambda: template("step_picture.html.j2").render(picture=in_page(drawn)), STYLES)


def in_page(drawn: BeforeAfter | None) -> dict[str, Any] | None:
    if drawn is None:
        return None
    sides = ("before", "after") if drawn.measured else ("now", "after")
    rows = [(f"{lane} {side}", side == "after" and not drawn.measured) for side in sides for lane in ("host", "device")]
    return {
        "rows": rows,
        "spoken": before_after_svg.spoken(drawn),
        "defs": Markup(before_after_svg.DEFS),
        "plot": before_after_svg.plot(drawn, only_shown=True),
        "says": drawn.shown.sentence,
        "key": [(before_after_svg.SHAPES[look], label) for look, label in before_after_svg.key(drawn)],
        "caption": drawn.caption,
    }


def projected(analysis: Analysis, projection: Projection) -> BeforeAfter | None:
    """Return the step before and after the removal of the projection's syncs; the times are the projection's.

    None where no step can be replayed, or the projection also launches another way.
    """
    projector, now = analysis.projector, _schedule(analysis)
    if now is None or projector is None or not projection.removed or projection.launches != "eager":
        return None
    after = projector.after(projection.removed, (), at=now.begin)
    if after is None or after.schedule is None:
        return None
    plan, base, name = after.schedule, projection.baseline_us, step_name(analysis.trace, now)
    length = float(max(now.end, plan.replayed_end) - now.begin)
    change = percent(abs(projection.saving_us), base)
    times = (
        f"{duration(base)} → {within(projection.predicted_us, projection.range_us)} ({range_of(projection.range_us)})"
    )
    scene = Scene(
        fixes=(0,),
        us=projection.predicted_us,
        range_us=projection.range_us,
        lanes=step_lanes.replayed(analysis, now, plan, (), length),
        moves=tuple(step_lanes.moves(analysis, now, plan, set(projection.removed))),
        sentence=f"{times}: {change} {'shorter' if projection.saving_us >= 0 else 'longer'}",
    )
    return BeforeAfter(
        name=name,
        length=length,
        recorded=step_lanes.recorded(analysis, now, length),
        causes=tuple(step_lanes.causes(analysis, now)),
        fixes=(Choice(title="the removed syncs", findings=projection.removed),),
        scenes=(scene,),
        base_us=base,
        device_us=analysis.step.device_busy_us,
        caption=f"{name.capitalize()} as recorded, above its replay.",
    )


def measured(before: Analysis, after: Analysis) -> BeforeAfter | None:
    """Return a recorded step of each state on one ruler; None where one of them has no step to draw."""
    now, then = _schedule(before), _schedule(after)
    if now is None or then is None:
        return None
    length = float(max(now.end - now.begin, then.end - then.begin))
    us, name = replayed(after.step), step_name(before.trace, now)
    scene = Scene((0,), us, (us, us), step_lanes.recorded(after, then, length), (), "")
    return BeforeAfter(
        name=name,
        length=length,
        recorded=step_lanes.recorded(before, now, length),
        causes=tuple(step_lanes.causes(before, now)),
        fixes=(Choice(title="the change"),),
        scenes=(scene,),
        base_us=replayed(before.step),
        device_us=before.step.device_busy_us,
        caption=f"{name.capitalize()} before, above {step_name(after.trace, then)} after, both as recorded.",
        measured=True,
    )


def _schedule(analysis: Analysis) -> Schedule | None:
    step = recorded_step(analysis)
    return step.schedule if step else None
