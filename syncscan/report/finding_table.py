"""Build flat rows of findings and races, for data frames and CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Confidence, Finding, FindingFacts, Severity
from syncscan.model.libraries import path_in_package
from syncscan.model.race import Race
from syncscan.report.column import Column, frame_of

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = {
    "id": Column("string", "stable across runs of the same code"),
    "rule": Column("string", "the rule's id"),
    "cause": Column("string", "class of the cause"),
    "severity": Column("string", "high, medium, low or info, by what the step would gain"),
    "confidence": Column("string", "high, medium or low: how sure the attribution is"),
    "op": Column("string", "outermost op"),
    "scope": Column("string", "record_function scopes, outermost first, joined by ' > '"),
    "module": Column("string", "nn.Module path, outermost first, joined by ' > '"),
    "file": Column("string", "source file of the user's line"),
    "line": Column("Int64", "line in it"),
    "function": Column("string", "function in it"),
    "exact": Column("boolean", "whether `line` is the line that waited"),
    "library_file": Column("string", "the library's file inside it that waited, from its package's root on"),
    "library_line": Column("Int64", "line in it"),
    "library_function": Column("string", "function in it"),
    "owner": Column("string", "user, framework or unknown"),
    "phase": Column("string", "forward, backward, optimizer, data or other"),
    "thread": Column("string", "host thread"),
    "call": Column("string", "runtime call that waits"),
    "count": Column("Int64", "sync points in the trace"),
    "per_step": Column("float64", "sync points per step"),
    "wait_us": Column("float64", "measured: host blocked on the device, µs per step"),
    "bubble_us": Column("float64", "measured: device idle after it until its next work, µs per step"),
    "moved_us": Column("float64", "projected: part of the wait that would move to the next sync, µs per step"),
    "recoverable_us": Column("float64", "projected: how much shorter the step would be, µs"),
    "recoverable_low_us": Column("float64", "projected: lower end of the range, µs"),
    "recoverable_high_us": Column("float64", "projected: upper end of the range, µs"),
    "once_compiled_us": Column(
        "float64", "projected: saving if the network is compiled and other syncs are removed, µs"
    ),
    "value": Column("string", "steers, shown, nothing or unknown: how the host uses the value that it waited for"),
    "title": Column("string", "one-sentence description"),
    "fix": Column("string", "what to do instead"),
    "trace": Column("string", "path of the trace"),
}
"""Columns in order, with pandas dtype and meaning; documents `Analysis.to_frame()` and `--format csv`."""


def finding_rows(findings: Sequence[Finding], path: str, waits_withheld: bool = False) -> list[dict[str, Any]]:
    """Return one flat row per finding, in order, with the keys of `COLUMNS`; withheld waits and idle times are None."""
    withheld = {"wait_us": None, "bubble_us": None} if waits_withheld else {}
    return [{**finding_row(f), **withheld, "trace": path} for f in findings]


def race_row(race: Race, path: str) -> dict[str, Any]:
    """Return the flat row of a race at its later line; columns that only a sync has are absent."""
    return {
        "id": race.id,
        "rule": race.kind.value,
        "severity": Severity.HIGH.value,
        "confidence": Confidence.HIGH.value,
        "file": race.second.file or None,
        "line": race.second.line or None,
        "function": race.second.function,
        "count": race.count,
        "title": race.title,
        "fix": race.fix,
        "trace": path,
    }


def finding_frame(analysis: Analysis) -> pd.DataFrame:
    path, withheld = analysis.trace.info.path, analysis.step.waits_withheld
    return frame_of(finding_rows(analysis.findings, path, withheld), COLUMNS)


def finding_row(f: FindingFacts) -> dict[str, Any]:
    source, library, limits = f.source, f.in_library, f.recoverable_range_us or (None, None)
    return {
        "id": f.id,
        "rule": f.rule,
        "cause": f.cause.value,
        "severity": f.severity.value,
        "confidence": f.confidence.value,
        "op": f.op,
        "scope": " > ".join(f.scope),
        "module": " > ".join(f.module),
        "file": source.file if source else None,
        "line": source.line if source else None,
        "function": source.function if source else None,
        "exact": source.exact if source else None,
        "library_file": path_in_package(library.file) if library else None,
        "library_line": library.line if library else None,
        "library_function": library.function if library else None,
        "owner": f.owner,
        "phase": f.phase.value,
        "thread": f.thread,
        "call": f.call,
        "count": f.count,
        "per_step": f.per_step,
        "wait_us": f.wait_us,
        "bubble_us": f.bubble_us,
        "moved_us": f.moved_us,
        "recoverable_us": f.recoverable_us,
        "recoverable_low_us": limits[0],
        "recoverable_high_us": limits[1],
        "once_compiled_us": f.once_compiled_us,
        "value": f.value.value,
        "title": f.title,
        "fix": f.fix,
    }
