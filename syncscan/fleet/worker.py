"""Analyze traces to ranks, which can be joined, or to the reasons why not, in any process or on any machine."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from syncscan import api
from syncscan.cost import collectives_of
from syncscan.errors import SyncscanError, TraceTooLarge
from syncscan.facts.period import step_intervals
from syncscan.load import memory_check
from syncscan.load.unpack import reason, redacted
from syncscan.model.analysis import Analysis
from syncscan.model.rank import RankAnalysis, RankStep, encoded
from syncscan.model.step_marks import FoundBy
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
    collectives, groups, rows = collectives_of(trace, ordered, steps)
    places = {row: place for place, row in enumerate(rows)}
    untimed = step.waits_withheld
    numbers = [s.number for s in trace.main_steps] or [0]
    return RankAnalysis(
        syncscan=__version__,
        path=trace.info.path,
        size_bytes=trace.info.size_bytes,
        rank=trace.info.rank,
        world_size=trace.info.world_size,
        base_ns=trace.info.base_ns,
        groups=groups,
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
        findings=tuple(gained[f.id].without_evidence for f in ordered),
        collectives=collectives,
        graph=graph_of_rank(projector, steps, places) if isinstance(projector, Projector) else None,
        warnings=analysis.warnings,
    )


class TraceOutcome(msgspec.Struct, frozen=True):
    """Outcome of one trace."""

    rank: bytes = b""
    """The rank, encoded by `model.rank.encoded`; empty where the trace can't be read."""
    reason: str = ""
    too_large: bool = False
    killed: bool = False


def outcome_of(path: str, options: Mapping[str, Any], most: int | None) -> TraceOutcome:
    """Analyze one trace; only errors that end the process are raised."""
    try:
        return TraceOutcome(rank=encoded(read_rank(path, **{**options, "max_memory": most})))
    except TraceTooLarge as e:
        return TraceOutcome(reason=redacted(str(e)), too_large=True)
    except MemoryError:
        return TraceOutcome(reason="it needs more memory than is available or allowed.", too_large=True)
    except SyncscanError as e:
        return TraceOutcome(reason=redacted(str(e)))
    except Exception as e:  # one trace doesn't stop the rest
        return TraceOutcome(reason=f"syncscan failed on it: {type(e).__name__}: {reason(e)}. Please report this.")


def main() -> None:
    """Work for a pool until stdin ends: first comes the memory limit in bytes or None, then (path, options) pairs."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a library prints is no answer
        most = pickle.load(sys.stdin.buffer)
        if most is not None:
            memory_check.hold_to(most)
        while True:
            try:
                path, options = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(outcome_of(path, options, most), answers)
            answers.flush()
