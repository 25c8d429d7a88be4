"""From an Analysis to the top of the HTML report: the verdict, its numbers and bars, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.projection import Group, Projection
from syncscan.model.step import Bound, StepSummary
from syncscan.report.names import shown
from syncscan.report.phrases import VERDICTS, first_screen, places, real, sentences, waited
from syncscan.report.units import duration, percent

MAX_CARDS = 3


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
class Card:
    """One thing to do; `links` are findings as (number, title, place)."""

    text: str
    links: tuple[tuple[int, str, str], ...] = ()
    gain: str = ""
    projected: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A step as a bar; `spoken` says the same in words, `range` is where its end may lie."""

    label: str
    value: str
    spoken: str
    parts: tuple[Part, ...]
    range: tuple[float, float] | None = None
    projected: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands at the top."""

    headline: str
    reason: str
    tiles: list[Tile]
    bars: list[Bar]
    communicates: bool
    """Whether the bars show exposed collectives."""
    todo: str
    cards: list[Card]


def verdict(analysis: Analysis) -> Verdict:
    """The top of the report. Names in it are safe to show, but not escaped for HTML.

    Args:
        analysis: any analysis; what can't be told of it is left out.
    """
    projection = analysis.whatif("all") if _projected_step(analysis) and analysis.replayable else None
    cards = _cards(analysis, projection)
    return Verdict(
        headline=f"{VERDICTS[analysis.step.bound]}.",
        reason=_reason(analysis, projection),
        tiles=_tiles(analysis),
        bars=_bars(analysis),
        communicates=analysis.step.communication_us > 0,
        todo=_todo_title(cards),
        cards=cards,
    )


def _reason(analysis: Analysis, projection: Projection | None) -> str:
    said = [shown(first_screen(analysis), 1200)]
    if projection is not None and projection.bound_after is not analysis.step.bound:
        said.append(f"{VERDICTS[projection.bound_after]} then")
    return sentences(*said)


def _tiles(analysis: Analysis) -> list[Tile]:
    step = analysis.step
    if not step.observed_us:
        return []
    tiles = [Tile("step", duration(step.observed_us), f"host {duration(step.host_us)}")]
    if step.unprofiled_us is not None:
        tiles.append(Tile("step, unprofiled", duration(step.unprofiled_us), "timed without the profiler"))
    if len(analysis.trace.device_rows):
        tiles += [
            Tile("device works", _device_share(step), f"{duration(step.device_busy_us)} a step"),
            Tile("host waits", waited(step.wait_us, step), "in syncs, a step"),
            Tile("device idle behind syncs", waited(step.bubble_us, step), "a step"),
        ]
    if step.communication_us > 0:
        tiles.append(Tile("waits for ranks or network", duration(step.communication_us), "a step, nothing beside it"))
    if step.input_us > 0:
        tiles.append(Tile("waits for input", duration(step.input_us), "a step"))
    if _projected_step(analysis):
        low, high = step.recoverable_range_us or (0.0, 0.0)
        note = f"{duration(low)} to {duration(high)}, projected"
        tiles.append(Tile("recoverable", duration(step.recoverable_us or 0.0), note, projected=True))
    return tiles


def _device_share(step: StepSummary) -> str:
    """How much of the step the device works: as the verdict says, or a dash where there is none."""
    return "–" if step.device_share is None else f"{step.device_share:.0%}"


def _projected_step(analysis: Analysis) -> bool:
    """Whether there is anything to remove, and a projection of the step without it."""
    return bool(real(analysis.findings)) and analysis.step.recoverable_range_us is not None


def _bars(analysis: Analysis) -> list[Bar]:
    """The measured step, without the profiler too where that was timed, and the projected one, to one scale."""
    step = analysis.step
    if not step.observed_us or not len(analysis.trace.device_rows):
        return []
    before = step.unprofiled_us or step.observed_us
    whole = max(step.observed_us, before)
    bars = [_measured_bar(step, whole)]
    if step.unprofiled_us is not None:
        part = Part("plain", 0.0, across(before, whole), f"timed without the profiler: {duration(before)}")
        bars.append(Bar("unprofiled", duration(before), f"Step without the profiler: {duration(before)}", (part,)))
    if _projected_step(analysis) and step.recoverable_range_us:
        bars.append(_projected_bar(before, step.recoverable_us or 0.0, step.recoverable_range_us, whole))
    return bars


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


def _cards(analysis: Analysis, projection: Projection | None) -> list[Card]:
    """What to do, the most useful first: the sets worth removing, then what limits the step once they are gone."""
    numbers = {f.id: n for n, f in enumerate(analysis.findings)}
    step = analysis.step
    if analysis.groups:
        cards = [_group_card(g, analysis, numbers, first=not k) for k, g in enumerate(analysis.groups[:MAX_CARDS])]
        return [*cards, *([_then(projection)] if projection and len(cards) < MAX_CARDS else [])]
    if step.recoverable_us is None:
        worst = [f for f in real(analysis.findings) if f.severity in (Severity.HIGH, Severity.MEDIUM)]
        if worst:
            return [_card([f], numbers, "" if step.waits_withheld else _costs(f)) for f in worst[:MAX_CARDS]]
    return [Card(text=shown(line, 600)) for line in step.advice] or [Card(text=_nothing(analysis))]


def _group_card(group: Group, analysis: Analysis, numbers: dict[str, int], first: bool) -> Card:
    members = [analysis.findings[numbers[i]] for i in group.ids if i in numbers]
    saves = f"saves about {duration(group.saving_us)} a step ({percent(group.saving_us, analysis.step.observed_us)})"
    if len(members) > 1:
        saves += f"; any one of them alone at most {duration(max(group.alone_us, 0.0))}"
    elif not first:
        saves += ", once the ones before are done"
    elif members and members[0].gain is not None:
        low, high = members[0].gain.range_us
        saves += f", projected {duration(low)} to {duration(high)}"
    return _card(members, numbers, saves, projected=True)


def _card(members: Sequence[Finding], numbers: dict[str, int], gain: str, projected: bool = False) -> Card:
    fixes = dict.fromkeys(f.diagnosis.fix for f in members)
    links = tuple((numbers[f.id], shown(f.diagnosis.title, 160), where(f)) for f in members)
    return Card(shown(next(iter(fixes), ""), 400), links, gain, projected)


def _then(p: Projection) -> Card:
    """What limits the step without its syncs."""
    if p.bound_after is Bound.DEVICE:
        text = f"After that the device is the limit: it works {percent(p.device_limit_us, p.predicted_us)} of the step."
    elif p.bound_after is Bound.COMMUNICATION:
        text = "After that other ranks or the network are the limit, which only the traces of all ranks together show."
    else:
        text = (
            f"After that the host is the limit: {duration(p.host_limit_us)} of its own work a step. "
            "Fewer and larger ops, torch.compile or CUDA graphs come next."
        )
    return Card(text, projected=True)


def _costs(f: Finding) -> str:
    return f"waits {duration(f.wait_us)} and leaves the device idle for {duration(f.bubble_us)} a step"


def _todo_title(cards: Sequence[Card]) -> str:
    if not any(c.links for c in cards):
        return "What to do"
    return {1: "The one thing to do", 2: "The two things to do"}.get(len(cards), "The three things to do")


def _nothing(analysis: Analysis) -> str:
    if not analysis.findings:
        return nothing_found(analysis)
    return "The syncs below cost this step nothing that matters."


def nothing_found(analysis: Analysis) -> str:
    """Why there are no findings, as far as the trace tells."""
    if not len(analysis.trace.device_rows):
        return "No sync point was found. The trace holds no device work: it may have been recorded without the device."
    return "No sync point was found: the host never waits for the device in this trace."


def where(f: Finding) -> str:
    """Where a finding is, as short as it can be told: line, scope, op."""
    w = f.where
    parts = (places(w), " › ".join(w.scope[-2:]), w.op)
    return shown(" · ".join(p for p in parts if p), 200)
