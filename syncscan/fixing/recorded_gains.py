"""Reads the projected gain of each source line from a recording."""

from __future__ import annotations

from pathlib import Path

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.fix import FixGain


def gains_of(trace: str) -> dict[tuple[str, int], FixGain]:
    """Return the projected gains of a recording's findings, by file and line.

    Args:
        trace: a trace or a saved analysis; its paths are taken as they are, or from the working directory on.

    Raises:
        TraceNotFound, TraceEmpty, TraceUnreadable: it can't be read.
    """
    return of_analysis(api.analyze(trace))


def of_analysis(analysis: Analysis) -> dict[tuple[str, int], FixGain]:
    """Return the projected gains of an analysis, by absolute path and line; of several findings of a line the sum."""
    step = analysis.step.unprofiled_us or analysis.step.observed_us
    result: dict[tuple[str, int], FixGain] = {}
    for finding in analysis.findings:
        source, gain = finding.where.source, finding.gain
        if source is None or gain is None:
            continue
        key = str(Path(source.file).absolute()), source.line
        so_far = result.get(key, FixGain(0.0, 0.0, 0.0, 0.0 if step else None))
        us, (low, high) = so_far.us + gain.recoverable_us, gain.range_us
        share = us / step if step else None
        result[key] = FixGain(us, so_far.low_us + low, so_far.high_us + high, share)
    return result


__all__ = ["gains_of", "of_analysis"]
