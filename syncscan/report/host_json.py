"""Build the host time's part of the JSON report."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct, convert

from syncscan.model.host import DearOp, Host, HostNode, HostShare, SampledHost
from syncscan.report.document import about


class SampledDocument(Struct, frozen=True):
    """Host time by function, without the profiler."""

    step_us: float
    steps: int
    samples: int
    overhead: Annotated[float | None, about("slowdown of the sampled steps, as a fraction")]
    phases: tuple[HostShare, ...]
    owners: tuple[HostShare, ...]
    nodes: tuple[HostNode, ...]


class CountedDocument(Struct, frozen=True):
    """Host time in the trace, by kind of activity."""

    step_us: float
    dispatch_us: Annotated[float, about("in ops, without the calls inside them")]
    launches_us: float
    allocations_us: float
    queries_us: float
    other_calls_us: float
    waits_us: Annotated[float, about("blocked on the device")]
    input_us: Annotated[float, about("in a loader's `__next__`")]
    python_us: Annotated[float, about("between ops and calls")]
    ops_per_step: float
    launches_per_step: float
    kernels_per_launch: float
    scaled: Annotated[bool, about("whether profiler overhead was removed from the times")]
    dearest: Annotated[tuple[DearOp, ...], about("top ops by self time")]


class HostDocument(Struct, frozen=True):
    """Where the host's time goes."""

    sampled: SampledDocument | None
    counted: CountedDocument | None


def host_document(host: Host) -> HostDocument | None:
    """Return the host's time as its JSON document, in µs per step; None where nothing is known."""
    if host.sampled is None and host.counted is None:
        return None
    return HostDocument(
        sampled=None if host.sampled is None else _sampled_document(host.sampled),
        counted=None if host.counted is None else convert(host.counted, CountedDocument, from_attributes=True),
    )


def _sampled_document(sampled: SampledHost) -> SampledDocument:
    return SampledDocument(
        step_us=sampled.step_us,
        steps=sampled.steps,
        samples=sampled.samples,
        overhead=sampled.overhead,
        phases=sampled.by_phase(),
        owners=sampled.by_owner(),
        nodes=sampled.nodes,
    )
