"""From an Analysis to flat rows, one a finding: what a data frame and a CSV file hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.finding import Finding

COLUMNS = {
    "id": "stable across runs of the same code",
    "rule": "the rule's id",
    "cause": "class of the cause",
    "severity": "high, medium, low or info, by what the step would gain",
    "confidence": "high, medium or low: how sure the attribution is",
    "op": "outermost op",
    "scope": "record_function scopes, outermost first, joined by ' > '",
    "module": "nn.Module path, outermost first, joined by ' > '",
    "file": "source file of the user's line",
    "line": "line in it",
    "function": "function in it",
    "exact": "whether `line` is the line that waited",
    "owner": "user, framework or unknown",
    "phase": "forward, backward, optimizer, data or other",
    "thread": "host thread",
    "call": "runtime call that waits",
    "count": "sync points in the trace",
    "per_step": "sync points a step",
    "wait_us": "measured: host blocked on the device, µs a step",
    "bubble_us": "measured: device idle behind it, µs a step",
    "moved_us": "projected: part of the wait that would turn up at the next sync, µs a step",
    "recoverable_us": "projected: how much shorter the step would be, µs",
    "recoverable_low_us": "projected: lower end of the range, µs",
    "recoverable_high_us": "projected: upper end of the range, µs",
    "title": "what it is, in a sentence",
    "fix": "what to do instead",
    "trace": "path of the trace",
}
"""Column → what it holds, in order; the documentation of `Analysis.to_frame()` and of `--format csv`."""


def finding_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """One flat row a finding, in the analysis' order, with the keys of `COLUMNS`."""
    return [{**_row(f), "trace": analysis.trace.info.path} for f in analysis.findings]


def _row(f: Finding) -> dict[str, Any]:
    w, source, gain = f.where, f.where.source, f.gain
    return {
        "id": f.id,
        "rule": f.rule,
        "cause": f.diagnosis.cause.value,
        "severity": f.severity.value,
        "confidence": f.confidence.value,
        "op": w.op,
        "scope": " > ".join(w.scope),
        "module": " > ".join(w.module),
        "file": source.file if source else None,
        "line": source.line if source else None,
        "function": source.function if source else None,
        "exact": source.exact if source else None,
        "owner": w.owner,
        "phase": w.phase.value,
        "thread": w.thread,
        "call": f.api,
        "count": f.count,
        "per_step": f.per_step,
        "wait_us": f.wait_us,
        "bubble_us": f.bubble_us,
        "moved_us": gain.moved_us if gain else None,
        "recoverable_us": gain.recoverable_us if gain else None,
        "recoverable_low_us": gain.range_us[0] if gain else None,
        "recoverable_high_us": gain.range_us[1] if gain else None,
        "title": f.diagnosis.title,
        "fix": f.diagnosis.fix,
    }
