"""From where a step's host time goes to its part of the JSON report."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct, convert

from syncscan.model.host import DearOp, Host, HostNode, HostShare, SampledHost
from syncscan.report.document import about


class SampledDocument(Struct, frozen=True):
    """The host's time by function, without the profiler."""

    step_us: float
    steps: int
    samples: int
    overhead: Annotated[float | None, about("how much longer the sampled steps took, as a part")]
    phases: tuple[HostShare, ...]
    owners: tuple[HostShare, ...]
    nodes: tuple[HostNode, ...]


class CountedDocument(Struct, frozen=True):
    """The host's time as the trace has it, by what it is in."""

    step_us: float
    dispatch_us: Annotated[float, about("in ops, without the calls in them")]
    launches_us: float
    allocations_us: float
    queries_us: float
    other_calls_us: float
    waits_us: Annotated[float, about("held by the device")]
    input_us: Annotated[float, about("in a loader's `__next__`")]
    python_us: Annotated[float, about("between ops and calls")]
    ops_per_step: float
    launches_per_step: float
    kernels_per_launch: float
    scaled: Annotated[bool, about("whether the profiler's share was taken out of the times")]
    dearest: Annotated[tuple[DearOp, ...], about("the ops that take most themselves")]


class HostDocument(Struct, frozen=True):
    """Where the host's time goes."""

    sampled: SampledDocument | None
    counted: CountedDocument | None


def host_document(host: Host) -> HostDocument | None:
    """Return all of it, times in µs a step; None where nothing is known."""
    if host.sampled is None and host.counted is None:
        return None
    return HostDocument(
        sampled=None if host.sampled is None else _sampled(host.sampled),
        counted=None if host.counted is None else convert(host.counted, CountedDocument, from_attributes=True),
    )


def _sampled(sampled: SampledHost) -> SampledDocument:
    return SampledDocument(
        step_us=sampled.step_us,
        steps=sampled.steps,
        samples=sampled.samples,
        overhead=sampled.overhead,
        phases=sampled.by_phase(),
        owners=sampled.by_owner(),
        nodes=sampled.nodes,
    )
