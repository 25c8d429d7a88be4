"""Analyze one rank's trace, and extract the data that joins it with other ranks."""

from __future__ import annotations

from typing import Any

from syncscan import api
from syncscan.cost import collectives_of
from syncscan.facts.period import step_intervals
from syncscan.model.analysis import Analysis
from syncscan.model.rank import RankAnalysis, RankStep
from syncscan.model.step_marks import FoundBy
from syncscan.report.finding_json import finding_document
from syncscan.version import __version__
from syncscan.whatif import Projector, graph_of_rank


def read_rank(path: str, **options: Any) -> RankAnalysis:
    """Analyze the trace of one rank; options and errors are those of `syncscan.analyze`."""
    return rank_of(api.analyze(path, **options))


def rank_of(analysis: Analysis) -> RankAnalysis:
    """Return the parts of an analysis that join its rank with others."""
    trace, step = analysis.trace, analysis.step
    steps = step_intervals(trace)
    projector = analysis.projector
    ordered = projector.findings if isinstance(projector, Projector) else analysis.findings
    gained = {f.id: f for f in analysis.findings}
    collectives = collectives_of(trace, ordered, steps)
    places = {row: place for place, row in enumerate(collectives.rows)}
    untimed = step.waits_withheld
    numbers = [s.number for s in trace.main_steps] or [0]
    return RankAnalysis(
        syncscan=__version__,
        path=trace.info.path,
        size_bytes=trace.info.size_bytes,
        rank=trace.info.rank,
        world_size=trace.info.world_size,
        base_ns=trace.info.base_ns,
        groups=collectives.groups,
        steps=tuple(RankStep(number, *interval) for number, interval in zip(numbers, steps, strict=True)),
        numbered=trace.steps_found.by is FoundBy.PROFILER,
        observed_us=step.observed_us,
        unprofiled_us=step.unprofiled_us,
        wait_us=None if untimed else step.wait_us,
        bubble_us=None if untimed else step.bubble_us,
        busy_us=step.device_busy_us,
        communication_us=step.communication_us,
        input_us=step.input_us,
        host_us=step.host_us,
        recoverable_us=step.recoverable_us,
        bound=step.bound.value,
        reason=step.reason,
        findings=tuple(finding_document(gained[f.id], analysis) for f in ordered),
        collectives=collectives.arrivals,
        graph=graph_of_rank(projector, steps, places) if isinstance(projector, Projector) else None,
        warnings=analysis.warnings,
    )
