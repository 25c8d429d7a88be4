"""Lay out the way from the step as it is to its limit, one fix after the other, as bars with ranges."""

from __future__ import annotations

from syncscan.model.analysis import Analysis
from syncscan.model.habit import Basis
from syncscan.report.before_after import BeforeAfter, Scene
from syncscan.report.phrases import replayed
from syncscan.report.shown_names import shown
from syncscan.report.step_lanes import NO_LANES
from syncscan.report.story import Story
from syncscan.report.tiles import BarPart, StepBar, across
from syncscan.report.units import duration, range_of, within


def falls(drawn: BeforeAfter, whole_us: float) -> list[StepBar]:
    """Return a bar for each fix on top of those before it, and one for the device's own work.

    Args:
        whole_us: the time that is as wide as a bar can be.
    """
    befores = [drawn.base_us, *(scene.us for scene in drawn.falls)]
    steps = zip(drawn.falls, drawn.fixes, befores, strict=False)
    bars = [_fall(scene, fix.title, before, whole_us) for scene, fix, before in steps]
    limit = drawn.limit_us
    return bars if not bars or limit is None else [*bars, _limit(limit, whole_us)]


def _fall(scene: Scene, title: str, before: float, widest: float) -> StepBar:
    low, high = scene.range_us
    takes, gain = within(scene.us, scene.range_us), max(before - scene.us, 0.0)
    saves = within(gain, (before - high, before - low))
    stays = BarPart("projected", 0.0, across(scene.us, widest), f"after {shown(title, 160)}: {takes}")
    saved = BarPart("saved", across(scene.us, widest), across(gain, widest), f"saved: {saves}")
    spoken = f"After {shown(title, 160)}: {takes}, from {range_of(scene.range_us)}"
    limits = (across(low, widest), across(high, widest))
    return StepBar(shown(title, 160), takes, spoken, (stays, saved), limits, projected=True)


def _limit(us: float, widest: float) -> StepBar:
    label = "limit: the device's work"
    part = BarPart("work", 0.0, across(us, widest), f"the device's own work: {duration(us)}")
    return StepBar(
        label, duration(us), f"The device's own work, which no fix on the host shortens: {duration(us)}", (part,)
    )


def sampled(analysis: Analysis, story: Story, whole_us: float) -> list[StepBar]:
    """Return a bar for each change whose saving samples show; it has no place in the trace and is drawn alone."""
    base, bars = replayed(analysis.step), []
    for text in story.remedies:
        if text.basis is not Basis.SAMPLES or text.alone_us is None:
            continue
        low, high = analysis.remedies[text.number - 1].range_us
        alone = Scene((), base - text.alone_us, (max(0.0, base - high), base - low), NO_LANES, (), "")
        bars.append(_fall(alone, f"{text.what} (alone, by samples)", base, whole_us))
    return bars
