"""Build the step's numbers, its bars, and the waterfall from the step as it is to its limit."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.facts.device_share import alike, without_profiler
from syncscan.model.analysis import Analysis
from syncscan.model.habit import Basis
from syncscan.model.host import SampledHost
from syncscan.model.step import StepSummary
from syncscan.report.before_after import BeforeAfter, Scene
from syncscan.report.phrases import measurable, real, replayed, saving, spread, waited
from syncscan.report.shown_names import shown
from syncscan.report.step_lanes import NO_LANES
from syncscan.report.story import Story
from syncscan.report.units import duration, range_of, within


class Tile(msgspec.Struct, frozen=True):
    """A number in large type."""

    label: str
    value: str
    note: str
    projected: bool = False


class BarPart(msgspec.Struct, frozen=True):
    """A rectangle of a bar, in percent of the bar's width."""

    look: str
    x: float
    width: float
    label: str


class StepBar(msgspec.Struct, frozen=True):
    """A step as a bar; `spoken` describes it in words, `range` is where its end may lie."""

    label: str
    value: str
    spoken: str
    parts: tuple[BarPart, ...]
    range: tuple[float, float] | None = None
    projected: bool = False


def tiles(analysis: Analysis) -> list[Tile]:
    step = analysis.step
    if not step.observed_us:
        return []
    numbers = [Tile("step", duration(step.observed_us), f"host {duration(step.host_us)}")]
    if step.unprofiled_us is not None:
        numbers.append(Tile("step, unprofiled", duration(step.unprofiled_us), "timed without the profiler"))
    if len(analysis.trace.device_rows):
        numbers += [
            Tile("device busy", f"{step.recorded_device_share:.0%}", _device_note(step)),
            Tile("host waits", waited(step.wait_us, step), "in syncs, per step"),
            Tile("device idle after syncs", waited(step.bubble_us, step), "per step"),
        ]
    if step.communication_us > 0:
        numbers.append(
            Tile("waits for ranks or network", duration(step.communication_us), "per step, nothing in parallel")
        )
    if step.input_us > 0:
        numbers.append(Tile("waits for input", duration(step.input_us), "a step"))
    if analysis.remedies and analysis.remedies[0].launches:
        both = analysis.remedies[0]
        saves, note = saving(both.alone_us, replayed(step), both.range_us), spread(both.range_us, replayed(step))
        numbers.append(Tile("recoverable, with a compile", saves, f"{note}, projected", projected=True))
    elif _projected_step(analysis):
        us, limits, replayed_us = step.recoverable_us or 0.0, step.recoverable_range_us or (0.0, 0.0), replayed(step)
        doubt = f"{spread(limits, replayed_us)}, " if measurable(limits[1], replayed_us) else ""
        numbers.append(Tile("recoverable", saving(us, replayed_us, limits), f"{doubt}projected", projected=True))
    elif first := next((r for r in analysis.remedies if r.basis is not Basis.UPPER_BOUND), None):
        replayed_us, how = replayed(step), "projected" if first.basis is Basis.REPLAY else "by samples"
        saves, note = saving(first.alone_us, replayed_us, first.range_us), spread(first.range_us, replayed_us)
        numbers.append(Tile("recoverable by the first change", saves, f"{note}, {how}", projected=True))
    return numbers


def _device_note(step: StepSummary) -> str:
    works = f"{duration(step.device_busy_us)} per step"
    if step.device_share is None or alike(step.recorded_device_share, step.device_share):
        return works
    return f"{works}, in the trace; {without_profiler(step.device_share, step.device_share_basis)}"


def _projected_step(analysis: Analysis) -> bool:
    return bool(real(analysis.findings)) and analysis.step.recoverable_range_us is not None


def bars(analysis: Analysis) -> list[StepBar]:
    """Return the measured step on device and host, the unprofiled step if it was timed, and the projected one.

    All to one scale; where waits are withheld the host's has no parts, and isn't drawn.
    """
    step = analysis.step
    if not step.observed_us or not len(analysis.trace.device_rows):
        return []
    before, widest = step.unprofiled_us or step.observed_us, widest_us(analysis)
    drawn = [_parts_bar("device", step.observed_us, _device_parts(step), widest)]
    if step.host_us and not step.waits_withheld:
        drawn.append(_parts_bar("host", step.host_us, _host_parts(step), widest))
    if step.unprofiled_us is not None:
        part = BarPart("free", 0.0, across(before, widest), f"timed without the profiler: {duration(before)}")
        drawn.append(
            StepBar("no profiler", duration(before), f"Step without the profiler: {duration(before)}", (part,))
        )
    if analysis.host_time.sampled and (thread := _thread_bar(analysis.host_time.sampled, widest)):
        drawn.append(thread)
    if _projected_step(analysis) and step.recoverable_range_us:
        drawn.append(_projected_bar(before, step.recoverable_us or 0.0, step.recoverable_range_us, widest))
    return drawn


def widest_us(analysis: Analysis) -> float:
    step = analysis.step
    return max(step.observed_us, step.unprofiled_us or 0.0, step.host_us)


def key(drawn: Sequence[StepBar]) -> list[tuple[str, str]]:
    """Return the meanings of the bars' styles, with durations; those of length 0 are left out."""
    parts = [part for bar in drawn for part in bar.parts if part.width and not bar.projected]
    projected = [("hatch", "projected, with its range")] if any(bar.projected for bar in drawn) else []
    return [*((part.look, part.label) for part in parts), *projected]


def _thread_bar(sampled: SampledHost, widest: float) -> StepBar | None:
    """Return where the step's thread is without the profiler: on its core, or off it and why; None where unmeasured."""
    used = sampled.used
    if used is None or used.off_us <= 0.0:
        return None
    off = min(used.off_us, sampled.step_us)
    beside = min(sum(used.stopped_us), off)
    unready = min(used.delayed_us or 0.0, off - beside)
    looks = [
        ("host", "on its core", sampled.step_us - off),
        ("stopped", "off it while another Python thread ran", beside),
        ("input", "ready, but without a core", unready),
        ("idle", "off it otherwise", off - beside - unready),
    ]
    return _parts_bar("thread, sampled", sampled.step_us, looks, widest)


def _device_parts(step: StepSummary) -> list[tuple[str, str, float]]:
    busy = min(step.device_busy_us, step.observed_us)
    communicates = min(step.communication_us, step.observed_us - busy)
    behind = min(step.bubble_us, step.observed_us - busy - communicates)
    return [
        ("work", "device busy", busy),
        ("ranks", "waits for other ranks or the network", communicates),
        ("bubble", "idle after syncs", behind),
        ("idle", "idle otherwise", step.observed_us - busy - communicates - behind),
    ]


def _host_parts(step: StepSummary) -> list[tuple[str, str, float]]:
    waits = min(step.wait_us, step.host_us)
    gets = min(step.input_us, step.host_us - waits)
    return [
        ("sync", "host waits in syncs", waits),
        ("input", "host waits for input", gets),
        ("host", "host works", step.host_us - waits - gets),
    ]


def _parts_bar(label: str, length: float, looks: Sequence[tuple[str, str, float]], widest: float) -> StepBar:
    """Return a measured bar of consecutive parts; those of length 0 are left out."""
    parts, at = [], 0.0
    for look, name, us in looks:
        if us > 0:
            parts.append(BarPart(look, across(at, widest), across(us, widest), f"{name}: {duration(us)}"))
        at += us
    spoken = f"Measured step of the {label}: " + ", ".join(p.label for p in parts)
    return StepBar(label, duration(length), spoken, tuple(parts))


def _projected_bar(before: float, gain: float, limits: tuple[float, float], widest: float) -> StepBar:
    after, low, high = (max(before - g, 0.0) for g in (gain, limits[1], limits[0]))
    takes = within(after, (low, high))
    spoken = f"Projected without syncs: {takes}, from {range_of((low, high))}"
    part = BarPart("projected", 0.0, across(after, widest), f"projected: {takes}")
    return StepBar("without syncs", takes, spoken, (part,), (across(low, widest), across(high, widest)), projected=True)


def across(us: float, whole: float) -> float:
    return round(max(0.0, min(100.0, 100.0 * us / whole)), 2) if whole else 0.0


# the waterfall


def falls(drawn: BeforeAfter, whole_us: float) -> list[StepBar]:
    """Return a bar for each fix on top of those before it, and one for the device's own work."""
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
