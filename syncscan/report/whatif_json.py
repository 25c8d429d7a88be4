"""Render a Projection as the JSON that other programs rely on (schema `syncscan.whatif/1`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.analysis import Analysis
from syncscan.model.json_text import Range, about, indented, written
from syncscan.model.projection import Projection, RemovalGroup
from syncscan.model.step import Bound, ShareBasis
from syncscan.report.document import Document
from syncscan.report.front import front_of
from syncscan.report.phrases import steps_found
from syncscan.version import __version__

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
