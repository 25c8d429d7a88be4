"""Render a Projection as text or JSON (schema `syncscan.whatif/1`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Struct, convert
from rich.box import SIMPLE_HEAD
from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from syncscan.facts.device_share import device_works
from syncscan.model.analysis import Analysis
from syncscan.model.json_text import indented
from syncscan.model.projection import Overlap, Pipeline, Projection, RemovalGroup
from syncscan.model.step import Bound, ShareBasis
from syncscan.report import remedies
from syncscan.report.document import Document, Range, about
from syncscan.report.phrases import steps_found
from syncscan.report.printable import printable
from syncscan.report.story import FindingText, Story, story_of
from syncscan.report.terminal import written
from syncscan.report.units import duration, percent, range_of, within
from syncscan.version import __version__

SCHEMA = "syncscan.whatif/1"
SHOWN = 12
"""Findings in the table of a text report; JSON has them all."""


class LimitsDocument(Struct, frozen=True):
    """Lower bounds of the step time."""

    host_us: float
    device_us: float


class PipelineDocument(Struct, frozen=True):
    """A scope's work that runs beside another's."""

    scope: str
    beside: str
    scope_us: float
    beside_us: float
    at_best_us: float
    saving_us: float


class WhatifDocument(Document, frozen=True):
    """The step without chosen syncs."""

    steps_found: str
    removed: Annotated[tuple[str, ...], about("ids of findings")]
    observed_us: float
    baseline_us: Annotated[float, about("the replayed step with nothing removed")]
    predicted_us: float
    range_us: Range
    saving_us: float
    speedup: Annotated[float, about("baseline over predicted")]
    bound_after: Bound
    launches: Annotated[str, about("how the projected step launches: eager, compile, reduce-overhead or graph")]
    limits: LimitsDocument
    notes: tuple[str, ...]
    profiled_us: Annotated[float, about("the step in the trace")]
    calibrated: Annotated[bool, about("whether the unprofiled step's time is known")]
    host_scale: Annotated[float, about("fraction of host time that isn't profiler overhead")]
    device_share: Annotated[
        float | None, about("fraction of the unprofiled step in which the device is busy, with its syncs")
    ]
    device_share_basis: Annotated[
        ShareBasis | None, about("basis of device_share; recorded: from the trace, with the profiler")
    ]
    recorded_device_share: Annotated[float, about("fraction of the step in the trace in which the device is busy")]
    advice: tuple[str, ...]
    groups: tuple[RemovalGroup, ...]
    overlaps: tuple[Overlap, ...]
    pipelines: tuple[PipelineDocument, ...]


def render(
    analysis: Analysis,
    projection: Projection,
    pipelines: Sequence[Pipeline] = (),
    width: int = 100,
    color: bool = False,
) -> str:
    """Return the projection as text.

    Args:
        projection: the projection of the findings that were to be removed.
        width: the width of the terminal, in characters.
        color: whether to write colors.
    """
    return written(_parts(analysis, projection, pipelines), width, color)


def _parts(analysis: Analysis, projection: Projection, pipelines: Sequence[Pipeline]) -> Iterator[RenderableType]:
    story = story_of(analysis)
    yield from headline(analysis, projection)
    if story.findings:
        yield _table(story.findings, frozenset(projection.removed))
    yield from streams(analysis, pipelines)
    yield from _advice(story)
    for note in projection.notes:
        yield Text(f"note: {printable(note)}", style="dim")


def headline(analysis: Analysis, p: Projection) -> Iterator[Text]:
    """Yield the projection in sentences: the step then, its limits, and what they are based on."""
    if p.provided:
        yield Text(p.provided, style="bold")
    if p.removed or p.launches != "eager":
        yield Text.assemble(
            (f"The step {_so(analysis, p)}: {within(p.predicted_us, p.range_us)}", "bold"),
            f" instead of {duration(p.baseline_us)}, {_less(p)}"
            f" ({range_of(p.range_us)}), {p.speedup:.2f} times as fast.",
        )
    else:
        none = "Nothing is removed" if analysis.findings else "There is no sync to remove"
        yield Text(f"{none}: the step takes {duration(p.baseline_us)}.", style="bold")
    changed = p.removed or p.launches != "eager"
    below = changed and p.range_us[0] < max(p.device_limit_us, p.host_limit_us)
    doubt = "; the range allows for errors in both" if below else ""
    limit = f"Then {p.bound_after.verdict}" if changed else p.bound_after.verdict.capitalize()
    yield Text(
        f"{limit}: {duration(p.device_limit_us)} of device work and {duration(p.host_limit_us)} of host work;"
        f" a step can't be shorter than either{doubt}."
    )
    yield Text(f"{_basis(p)}{_device(analysis)}", style="dim")
    yield Text(printable(steps_found(analysis)), style="dim")


_LAUNCHED = {
    "eager": "",
    "compile": "with its network compiled",
    "reduce-overhead": "with its network compiled (reduce-overhead)",
    "graph": "as one CUDA graph",
}


def _so(analysis: Analysis, p: Projection) -> str:
    """Without what, and launched how."""
    without = f"without {_these(analysis, p)}" if p.removed else "with its syncs" if analysis.findings else ""
    return " and ".join(part for part in (without, _LAUNCHED[p.launches]) if part)


def _less(p: Projection) -> str:
    change = percent(abs(p.saving_us), p.baseline_us)
    return f"{change} shorter" if p.saving_us >= 0 else f"{change} longer"


def _these(analysis: Analysis, p: Projection) -> str:
    if len(p.removed) == 1:
        return "one sync"
    whole = {f.id for f in analysis.findings if not f.diagnosis.intended} <= set(p.removed)
    return f"any of its {len(p.removed)} syncs" if whole else f"{len(p.removed)} syncs"


def _basis(p: Projection) -> str:
    agrees = (
        f"replay of the recorded step: {duration(p.baseline_us)}, {abs(p.baseline_us / p.observed_us - 1):.1%} off"
        if p.observed_us
        else ""
    )
    if p.calibrated:
        return (
            f"The step takes {duration(p.observed_us)} without the profiler, {duration(p.profiled_us)} in the trace"
            f" ({agrees}; {p.host_scale:.0%} of the host time in the trace isn't profiler overhead)."
        )
    return f"The step takes {duration(p.observed_us)} in the trace ({agrees})."


def _device(analysis: Analysis) -> str:
    """Return how much of the step as it is the device is busy, as every report states it; empty without a verdict."""
    return "" if analysis.step.device_share is None else f" The device is busy {device_works(analysis.step)}."


def _table(findings: Sequence[FindingText], removed: frozenset[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("saves alone", justify="right", no_wrap=True)
    table.add_column("waits", justify="right", no_wrap=True)
    table.add_column("sync, and where", overflow="fold")
    for finding in findings[:SHOWN]:
        saves = f"{finding.saves} ({finding.share})" if finding.share else finding.saves
        where = " · ".join(part for part in (finding.where, finding.doubt) if part)
        sync = Rows(Text(printable(finding.id)), Text(printable(where, 160), "dim"))
        table.add_row("✗" if finding.id in removed else "", saves, finding.waits, sync)
    if len(findings) > SHOWN:
        table.add_row("", "", "", f"… {len(findings) - SHOWN} more")
    return table


def _advice(story: Story) -> Iterator[RenderableType]:
    """Yield what to change, as every report of this trace states it."""
    if story.nothing:
        yield _arrow(story.nothing)
    if story.remedies:
        yield Text(f"{remedies.title(story.remedies)}:", style="bold")
        grid = Table.grid()
        for entry in story.remedies[: remedies.SHOWN]:
            grid.add_row(f" {entry.number}. ", Text(printable(f"{entry.saves}, {entry.doubt}: {entry.name}")))
        yield grid
    if len(story.remedies) > remedies.SHOWN:
        yield Text(f" … and {len(story.remedies) - remedies.SHOWN} more.")
    if story.then:
        yield _arrow(story.then)


def _arrow(sentence: str) -> Text:
    return Text.assemble(("→ ", "bold green"), printable(sentence))


def streams(analysis: Analysis, pipelines: Sequence[Pipeline]) -> Iterator[Text]:
    """Yield how far streams overlapped, and the bounds that were asked for."""
    for o in analysis.overlaps:
        less = min(o.work_us)
        yield Text(
            f"Streams {o.streams[0]} and {o.streams[1]} of device {o.device} were busy {duration(o.work_us[0])} "
            f" and {duration(o.work_us[1])} per step, {duration(o.shared_us)} of it at the same time"
            f" ({percent(o.shared_us, less)} of the shorter)."
        )
    for p in pipelines:
        beside = f"`{p.beside}`" if p.beside else "the rest of the step"
        yield Text(
            printable(
                f"`{p.scope}` ({duration(p.scope_us)} of device work) on a stream of its own, a step ahead, beside"
                f" {beside} ({duration(p.beside_us)}): saves at most {duration(p.saving_us)}"
                f" of {duration(p.baseline_us)} ({percent(p.saving_us, p.baseline_us)}); "
                "less if their kernels compete for the device."
            )
        )


def render_json(analysis: Analysis, projection: Projection, pipelines: Sequence[Pipeline] = ()) -> str:
    """Return the projection as indented JSON; times in µs per step."""
    return indented(document(analysis, projection, pipelines))


def document(analysis: Analysis, projection: Projection, pipelines: Sequence[Pipeline] = ()) -> WhatifDocument:
    """Return the projection as its JSON document."""
    p = projection
    return WhatifDocument(
        schema=SCHEMA,
        syncscan=__version__,
        steps_found=steps_found(analysis),
        removed=p.removed,
        observed_us=p.observed_us,
        baseline_us=p.baseline_us,
        predicted_us=p.predicted_us,
        range_us=p.range_us,
        saving_us=p.saving_us,
        speedup=p.speedup,
        bound_after=p.bound_after,
        launches=p.launches,
        limits=LimitsDocument(p.host_limit_us, p.device_limit_us),
        notes=(*([p.provided] if p.provided else []), *p.notes),
        profiled_us=p.profiled_us,
        calibrated=p.calibrated,
        host_scale=p.host_scale,
        device_share=analysis.step.device_share,
        device_share_basis=analysis.step.device_share_basis,
        recorded_device_share=analysis.step.recorded_device_share,
        advice=story_of(analysis).advice,
        groups=analysis.groups,
        overlaps=analysis.overlaps,
        pipelines=convert(pipelines, tuple[PipelineDocument, ...], from_attributes=True),
    )
