"""From verdicts to the JSON that other programs rely on (schema `syncscan.check/1`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syncscan.model.check import Verdict, Violation
from syncscan.model.finding import Finding
from syncscan.model.json_text import indented
from syncscan.version import __version__

if TYPE_CHECKING:
    from syncscan.model.documents import CheckDocument, CheckedFinding, VerdictDocument, ViolationDocument

SCHEMA = "syncscan.check/1"


def render(verdicts: Sequence[Verdict], rules_from: str) -> str:
    """The verdicts as indented JSON; times in µs a step."""
    document: CheckDocument = {
        "schema": SCHEMA,
        "syncscan": __version__,
        "passed": all(v.passed for v in verdicts),
        "rules_from": rules_from,
        "traces": [_verdict(v) for v in verdicts],
    }
    return indented(document) + "\n"


def _verdict(verdict: Verdict) -> VerdictDocument:
    return {
        "path": verdict.path,
        "passed": verdict.passed,
        "violations": [_violation(v) for v in verdict.violations],
        "counted": [_finding(f) for f in verdict.counted],
        "exempt": [{**_finding(e.finding), "by": e.by.value, "reason": e.reason} for e in verdict.exempt],
        "notes": list(verdict.said),
    }


def _violation(violation: Violation) -> ViolationDocument:
    limit = violation.limit
    return {
        "limit": {
            "by": limit.by or None,
            "glob": limit.glob or None,
            "syncs": limit.syncs,
            "wait_ms": limit.wait_ms,
            "recoverable": limit.recoverable,
            "held_up": limit.held_up,
        },
        "sentence": violation.sentence,
        "findings": [f.id for f in violation.findings],
    }


def _finding(finding: Finding) -> CheckedFinding:
    source = finding.where.source
    return {
        "id": finding.id,
        "rule": finding.rule,
        "op": finding.where.op,
        "scope": list(finding.where.scope),
        "file": source.file if source else None,
        "line": source.line if source else None,
        "exact": source.exact if source else None,
        "per_step": finding.per_step,
        "wait_us": finding.wait_us,
        "recoverable_us": finding.gain.recoverable_us if finding.gain else None,
    }
