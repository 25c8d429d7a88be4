"""Describe a dry run: where it would wait, and how much of it was recognized."""

from __future__ import annotations

from collections.abc import Iterator

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.report.phrases import real
from syncscan.report.units import times

RANKING = "Sorted by frequency, since nothing was timed; findings outside of the steps come last."
NOT_TIMED = "not timed"


def is_dry(analysis: Analysis) -> bool:
    """Return whether an analysis is of a dry run, in which nothing was timed."""
    return analysis.trace.info.capture.pretended


def ran_nothing(analysis: Analysis) -> bool:
    """Return whether a dry run's program put nothing on the device."""
    coverage = analysis.trace.info.capture.coverage
    return not _outside_steps(analysis) and (coverage is None or not coverage.ops)


def _outside_steps(analysis: Analysis) -> bool:
    return bool(analysis.findings) or any(real(of.findings) for of in analysis.phases if of)


def verdict(analysis: Analysis) -> str:
    """Return how many places would wait; never "none" where ops weren't recognized or nothing ran."""
    waits, coverage = real(analysis.findings), analysis.trace.info.capture.coverage
    if waits:
        places = "1 place" if len(waits) == 1 else f"{len(waits)} places"
        return f"{places} would block the host, {often(sum(f.per_step for f in waits), analysis)}"
    if ran_nothing(analysis):
        return "Nothing ran on the simulated device"
    outside = _outside_steps(analysis)
    if coverage is not None and coverage.gaps:
        return f"No wait found{' in the steps' * outside} among the recognized ops"
    return "Nothing in the steps would block the host" if outside else "Nothing that ran would block the host"


def reason(analysis: Analysis) -> str:
    """Return that nothing was timed, and how much was recognized."""
    return " ".join(lack.sentence for lack in analysis.integrity.lacks)


def steps(analysis: Analysis) -> str:
    """Return what counts as a step."""
    count = len(analysis.trace.steps)
    if count:
        return f"{count} step{'s' * (count != 1)} found by the dry run."
    return "The dry run found no steps, so counts are for the whole run."


def circumstances(finding: Finding, analysis: Analysis) -> Iterator[str]:
    """Yield how often a finding waits, or that it lies outside of the steps."""
    if finding.intended and all(o.where.step is None for o in finding.occurrences):
        yield f"{finding.count} time{'s' * (finding.count != 1)} outside of the steps"
    else:
        yield often(finding.per_step, analysis)


def often(per_step: float, analysis: Analysis) -> str:
    """Return how often per step; in total for a run without steps, such as one that fails before its first."""
    if analysis.trace.main_steps:
        return times(per_step)
    return "once" if per_step == 1 else f"{per_step:.0f} times"
