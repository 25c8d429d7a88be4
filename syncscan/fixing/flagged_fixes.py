"""Flag the places of a patch for code scanning, each with its change."""

from __future__ import annotations

from syncscan.fixing.report import gain, reason, tolerance, verdict
from syncscan.model.finding import Severity
from syncscan.model.fix import Fix, Fixed, Safety
from syncscan.report.flagged import FilePosition, Flagged, FlaggedLine
from syncscan.report.phrases import sentences


def flagged_fixes(fixed: Fixed) -> Flagged:
    beside = (verdict(fixed), *((tolerance(fixed),) if fixed.applied else ()), *fixed.notes)
    notes = tuple(("note", sentence) for sentence in beside)
    return Flagged(tool="syncscan fix", lines=tuple(map(_line, fixed.fixes)), notifications=notes)


def _line(fix: Fix) -> FlaggedLine:
    manual = fix.safety is Safety.MANUAL
    title = f"{fix.title}: {fix.change}"
    return FlaggedLine(
        rule=fix.rule,
        severity=Severity.LOW if manual else Severity.MEDIUM,
        title=fix.title,
        message="",
        place=FilePosition(fix.file, fix.line, end_line=fix.end_line),
        summary=sentences(title, reason(fix), f"Projected gain: {gain(fix)}" if fix.gain else ""),
        figures={"safety": fix.safety.value, "verified": fix.verified, "applied": fix.applied, "waits": fix.waits},
        changes=((f"{fix.change} ({fix.safety.value}; {fix.how})", fix.changes),) if fix.changes else (),
    )
