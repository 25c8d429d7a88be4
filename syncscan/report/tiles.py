"""From an Analysis to what stands below the verdict of the HTML report: the step's numbers, and its bars."""

from __future__ import annotations

from dataclasses import dataclass

from syncscan.model.analysis import Analysis
from syncscan.model.step import StepSummary
from syncscan.report.phrases import real, waited
from syncscan.report.units import duration


@dataclass(frozen=True, slots=True)
class Tile:
    """A number in large type."""

    label: str
    value: str
    note: str
    projected: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A rectangle of a bar that is 1000 wide."""

    look: str
    x: float
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A step as a bar; `spoken` says the same in words, `range` is where its end may lie."""

    label: str
    value: str
    spoken: str
    parts: tuple[Part, ...]
    range: tuple[float, float] | None = None
    projected: bool = False


def tiles(analysis: Analysis) -> list[Tile]:
    """The step's numbers; what can't be told of it is left out."""
    step = analysis.step
    if not step.observed_us:
        return []
    found = [Tile("step", duration(step.observed_us), f"host {duration(step.host_us)}")]
    if step.unprofiled_us is not None:
        found.append(Tile("step, unprofiled", duration(step.unprofiled_us), "timed without the profiler"))
    if len(analysis.trace.device_rows):
        found += [
            Tile("device works", _device_share(step), f"{duration(step.device_busy_us)} a step"),
            Tile("host waits", waited(step.wait_us, step), "in syncs, a step"),
            Tile("device idle behind syncs", waited(step.bubble_us, step), "a step"),
        ]
    if step.communication_us > 0:
        found.append(Tile("waits for ranks or network", duration(step.communication_us), "a step, nothing beside it"))
    if step.input_us > 0:
        found.append(Tile("waits for input", duration(step.input_us), "a step"))
    if _projected_step(analysis):
        low, high = step.recoverable_range_us or (0.0, 0.0)
        note = f"{duration(low)} to {duration(high)}, projected"
        found.append(Tile("recoverable", duration(step.recoverable_us or 0.0), note, projected=True))
    return found


def _device_share(step: StepSummary) -> str:
    """How much of the step the device works: as the verdict says, or a dash where there is none."""
    return "–" if step.device_share is None else f"{step.device_share:.0%}"


def _projected_step(analysis: Analysis) -> bool:
    """Whether there is anything to remove, and a projection of the step without it."""
    return bool(real(analysis.findings)) and analysis.step.recoverable_range_us is not None


def bars(analysis: Analysis) -> list[Bar]:
    """The measured step, without the profiler too where that was timed, and the projected one, to one scale."""
    step = analysis.step
    if not step.observed_us or not len(analysis.trace.device_rows):
        return []
    before = step.unprofiled_us or step.observed_us
    whole = max(step.observed_us, before)
    found = [_measured_bar(step, whole)]
    if step.unprofiled_us is not None:
        part = Part("plain", 0.0, across(before, whole), f"timed without the profiler: {duration(before)}")
        found.append(Bar("unprofiled", duration(before), f"Step without the profiler: {duration(before)}", (part,)))
    if _projected_step(analysis) and step.recoverable_range_us:
        found.append(_projected_bar(before, step.recoverable_us or 0.0, step.recoverable_range_us, whole))
    return found


def _measured_bar(step: StepSummary, whole: float) -> Bar:
    busy = min(step.device_busy_us, step.observed_us)
    communicates = min(step.communication_us, step.observed_us - busy)
    behind = min(step.bubble_us, step.observed_us - busy - communicates)
    rest = step.observed_us - busy - communicates - behind
    looks = (
        ("work", "device works", busy),
        *((("ranks", "waits for other ranks or the network", communicates),) if communicates else ()),
        ("bubble", "idle behind syncs", behind),
        ("idle", "idle otherwise", rest),
    )
    parts, at = [], 0.0
    for look, label, length in looks:
        parts.append(Part(look, across(at, whole), across(length, whole), f"{label}: {duration(length)}"))
        at += length
    spoken = "Measured step: " + ", ".join(p.label for p in parts)
    return Bar("measured", duration(step.observed_us), spoken, tuple(parts))


def _projected_bar(before: float, gain: float, limits: tuple[float, float], whole: float) -> Bar:
    after, low, high = (max(before - g, 0.0) for g in (gain, limits[1], limits[0]))
    spoken = f"Projected without syncs: {duration(after)}, from {duration(low)} to {duration(high)}"
    part = Part("projected", 0.0, across(after, whole), f"projected: {duration(after)}")
    return Bar(
        "without syncs", duration(after), spoken, (part,), (across(low, whole), across(high, whole)), projected=True
    )


def across(us: float, whole: float) -> float:
    """A time as a length of a bar that is 1000 wide."""
    return round(max(0.0, min(1000.0, 1000.0 * us / whole)), 1) if whole else 0.0
