"""Describe a Projection: the step then, what was removed, what each sync saves alone, and what to change.

In blocks, and as the JSON that other programs rely on (schema `syncscan.whatif/1`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Struct

from syncscan.facts.device_work import device_works
from syncscan.model.analysis import Analysis
from syncscan.model.json_text import Document, Range, about, indented, written
from syncscan.model.projection import Projection, RemovalGroup
from syncscan.model.step import Bound, ShareBasis
from syncscan.report import step_picture, svg
from syncscan.report.analysis_report import changes
from syncscan.report.blocks import (
    Block,
    Grid,
    GridColumn,
    Heading,
    Items,
    Sentence,
    Span,
    Stacked,
    Words,
    code,
    notes,
    strong,
    to_do,
)  # fmt: skip
from syncscan.report.front import Front, front_of
from syncscan.report.phrases import steps_found
from syncscan.report.story import FindingText, finding_texts
from syncscan.report.units import duration, percent, range_of, within
from syncscan.version import __version__

SHOWN = 12
"""Findings that are listed, except on a page."""


def blocks(analysis: Analysis, projection: Projection) -> Iterator[Block]:
    yield from _headline(analysis, projection)
    if picture := step_picture.projected(analysis, projection):
        yield svg.figure(picture, "The step before and after")
    if findings := finding_texts(analysis):
        yield _table(findings, frozenset(projection.removed))
    yield from _advice(front_of(analysis))
    yield from notes(projection.notes)


def _headline(analysis: Analysis, p: Projection) -> Iterator[Block]:
    if p.provided:
        yield Sentence(p.provided, "strong")
    if p.removed or p.launches != "eager":
        verdict = f"The step {_so(analysis, p)}: {within(p.predicted_us, p.range_us)}"
        change = f"{_less(p)} ({range_of(p.range_us)}), {p.speedup:.2f} times as fast"
        yield Heading((strong(verdict), f" instead of {duration(p.baseline_us)}, {change}."), 1)
    else:
        none = "Nothing is removed" if analysis.findings else "There is no sync to remove"
        yield Heading(f"{none}: the step takes {duration(p.baseline_us)}.", 1)
    if p.waits_us is not None:
        yield Sentence(_beside_waits(p))
    changed = p.removed or p.launches != "eager"
    below = changed and p.range_us[0] < max(p.device_limit_us, p.host_limit_us)
    doubt = "; the range allows for errors in both" if below else ""
    limit = f"Then {p.bound_after.verdict}" if changed else p.bound_after.verdict.capitalize()
    yield Sentence(
        f"{limit}: {duration(p.device_limit_us)} of device work and {duration(p.host_limit_us)} of host work;"
        f" a step can't be shorter than either{doubt}."
    )
    yield Sentence(f"{_basis(p)}{_device(analysis)}", "dim")
    yield Sentence(steps_found(analysis), "dim")


def _beside_waits(p: Projection) -> str:
    """Return what the fixes take besides the waits."""
    if p.waits_us == p.predicted_us:
        return "No rule says what its fix puts in an op's place: the fixes gain what the waits do."
    shorter = percent(max(0.0, p.baseline_us - (p.waits_us or 0.0)), p.baseline_us)
    return f"That is with the ops that the fixes replace; without the waits alone it is {shorter} shorter."


_LAUNCHED = {
    "eager": "",
    "compile": "with its network compiled",
    "reduce-overhead": "with its network compiled (reduce-overhead)",
    "graph": "as one CUDA graph",
}


def _so(analysis: Analysis, p: Projection) -> str:
    without = f"without {_these(analysis, p)}" if p.removed else "with its syncs" if analysis.findings else ""
    return " and ".join(part for part in (without, _LAUNCHED[p.launches]) if part)


def _less(p: Projection) -> str:
    change = percent(abs(p.saving_us), p.baseline_us)
    return f"{change} shorter" if p.saving_us >= 0 else f"{change} longer"


def _these(analysis: Analysis, p: Projection) -> str:
    if len(p.removed) == 1:
        return "one sync"
    whole = {f.id for f in analysis.findings if not f.intended} <= set(p.removed)
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


def _table(findings: Sequence[FindingText], removed: frozenset[str]) -> Grid:
    columns = (
        GridColumn(),
        GridColumn("saves alone", right=True),
        GridColumn("waits", right=True),
        GridColumn("sync, and where"),
    )
    listed = sorted(findings, key=lambda finding: finding.of.id not in removed)
    return Grid(columns, tuple(_row(finding, finding.of.id in removed) for finding in listed), SHOWN)


def _row(finding: FindingText, removed: bool) -> tuple[Words | Stacked, ...]:
    saves = f"{finding.saves} ({finding.share})" if finding.share else finding.saves
    where = " · ".join(part for part in (finding.where, finding.doubt) if part)
    return Span("✗", "bad") if removed else "", saves, finding.waits, Stacked((code(finding.of.id), Span(where, "dim")))


def _advice(front: Front) -> Iterator[Block]:
    """Yield what to change, as every report of this trace states it."""
    if front.changes:
        yield Heading("What to change:")
        yield Items(tuple(changes(front.changes)))
    if front.then:
        yield to_do(front.then)


SCHEMA = "syncscan.whatif/1"


class LimitsDocument(Struct, frozen=True):
    """Lower bounds of the step time."""

    host_us: float
    device_us: float


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
    waits_us: Annotated[float | None, about("the predicted step if only waits went; with --fix, where ops go along")]
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


def render(analysis: Analysis, projection: Projection) -> str:
    """Return the projection as indented JSON; times in µs per step."""
    return indented(document(analysis, projection))


def document(analysis: Analysis, projection: Projection) -> WhatifDocument:
    p = projection
    return written(
        WhatifDocument,
        p,
        schema=SCHEMA,
        syncscan=__version__,
        steps_found=steps_found(analysis),
        limits=LimitsDocument(p.host_limit_us, p.device_limit_us),
        notes=(*([p.provided] if p.provided else []), *p.notes),
        device_share=analysis.step.device_share,
        device_share_basis=analysis.step.device_share_basis,
        recorded_device_share=analysis.step.recorded_device_share,
        advice=front_of(analysis).advice,
        groups=analysis.groups,
    )
