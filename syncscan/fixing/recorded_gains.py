"""Reads the projected gain of each source line from a recording."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.fix import Fix, Fixed, FixGain
from syncscan.model.projection import Projection


def gains_of(trace: str) -> dict[tuple[str, int], FixGain]:
    """Return the projected gains of a recording's findings, by file (from the working directory on) and line."""
    return of_analysis(api.analyze(trace))


def of_analysis(analysis: Analysis) -> dict[tuple[str, int], FixGain]:
    """Return the projected gains of an analysis, by absolute path and line; of several findings of a line the sum."""
    step = analysis.step.unprofiled_us or analysis.step.observed_us
    result: dict[tuple[str, int], FixGain] = {}
    for finding in analysis.findings:
        key, gain, limits = _place(finding), finding.recoverable_us, finding.recoverable_range_us
        if key is None or gain is None or limits is None:
            continue
        so_far = result.get(key, FixGain(0.0, 0.0, 0.0, 0.0 if step else None))
        us, (low, high) = so_far.us + gain, limits
        share = us / step if step else None
        result[key] = FixGain(us, so_far.low_us + low, so_far.high_us + high, share)
    return result


def projected(analysis: Analysis, fixes: Iterable[Fix]) -> Projection | None:
    """Return the projected step without the waits that these fixes remove; None if the recording has none of them."""
    spans = [(fix, str(Path(fix.file).absolute()), range(fix.line, fix.end_line + 1)) for fix in fixes]
    staying = {(file, line) for fix, file, lines in spans for line in lines if fix.shared}
    lines = {(file, line) for _, file, lines in spans for line in lines} - staying
    removed = [f.id for f in analysis.findings if f.recoverable_us is not None and _place(f) in lines]
    return analysis.whatif(*(f"id:{number}" for number in removed)) if removed else None


def with_note(fixed: Fixed, trace: str) -> Fixed:
    """Return the patch with a note if the recording at `trace` shows the gain of none of its fixes."""
    if not fixed.fixes or any(fix.gain for fix in fixed.fixes):
        return fixed
    note = f"{trace} has no projected wait at these lines, so gains are unknown: does it record this program?"
    return replace(fixed, notes=(*fixed.notes, note))


def _place(finding: Finding) -> tuple[str, int] | None:
    source = finding.source
    return (str(Path(source.file).absolute()), source.line) if source is not None else None
