"""From an Analysis to SARIF 2.1.0, for code scanning: a result a finding, at its line, with its rule."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Diagnosis, Finding, Severity, Source
from syncscan.model.json_text import indented
from syncscan.model.step import StepSummary
from syncscan.report.names import shown
from syncscan.report.phrases import certainty, chain, in_library, line, measured, projected, sentences, what
from syncscan.report.sarif_parts import LEVELS, SCHEMA, TEXT, artifact, rule, text
from syncscan.report.story import story_of
from syncscan.version import __version__


def render(analysis: Analysis) -> str:
    """The findings as a SARIF log with one run.

    A finding without a source is located at the trace: code scanning refuses results that are nowhere.
    """
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(analysis)]}
    return indented(log) + "\n"


def _run(analysis: Analysis) -> dict[str, Any]:
    rules: dict[str, Diagnosis] = {}
    for f in analysis.shown.findings:
        rules.setdefault(f.rule, f.diagnosis)
    driver = {"name": "syncscan", "version": __version__, "rules": [rule(d) for d in rules.values()]}
    index = {rule: k for k, rule in enumerate(rules)}
    story = story_of(analysis)
    notes = [{"level": "warning", "message": {"text": text(w)}} for w in (*story.lacking, *story.warnings)]
    return {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "results": [_result(f, index[f.rule], analysis) for f in analysis.shown.findings],
        "properties": {
            "step": _step(analysis.step, story.verdict),
            "stepsFound": text(story.steps_found),
            "hidden": text(story.hidden),
        },
    }


def _result(f: Finding, rule: int, analysis: Analysis) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": f.rule,
        "ruleIndex": rule,
        "level": LEVELS[f.severity],
        "kind": "informational" if f.severity is Severity.INFO else "fail",
        "message": {"text": text(_message(f, analysis.step))},
        "locations": [_location(f, analysis.trace.info.path)],
        "partialFingerprints": {"syncscanFindingId/v1": f.id},
        "properties": _numbers(f),
    }
    inner = f.where.framework
    if inner:
        result["relatedLocations"] = [
            {"id": 1, "message": {"text": "called from here"}, "physicalLocation": _physical(inner)}
        ]
    return result


def _message(f: Finding, step: StepSummary) -> str:
    source = f.where.source
    doubt = "" if source is None or source.exact else f"The line is uncertain: {certainty(source)}"
    said = f"{f.diagnosis.title}: {what(f)} {measured(f, step)}"
    library = f"It is made in {in_library(f.where)}" if f.where.in_library else ""
    return sentences(said, library, projected(f, step), f.diagnosis.fix, doubt)


def _location(f: Finding, trace: str) -> dict[str, Any]:
    w = f.where
    name = " > ".join(w.scope) or (w.source.function if w.source else "") or " > ".join(chain(f))
    logical = {"fullyQualifiedName": shown(name, TEXT), "kind": "function" if w.source and not w.scope else "member"}
    physical = _physical(w.source) if w.source else {"artifactLocation": artifact(PurePath(trace).name)}
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _physical(source: Source) -> dict[str, Any]:
    return {"artifactLocation": artifact(source.file), "region": {"startLine": line(source)}}


def _numbers(f: Finding) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "cause": f.diagnosis.cause.value,
        "confidence": f.confidence.value,
        "phase": f.where.phase.value,
        "owner": f.where.owner,
        "value": f.where.use.value,
        "per_step": f.per_step,
        "wait_us": f.wait_us,
        "bubble_us": f.bubble_us,
    }
    if f.gain:
        numbers |= {
            "recoverable_us": f.gain.recoverable_us,
            "recoverable_range_us": list(f.gain.range_us),
            "moved_us": f.gain.moved_us,
        }
    return numbers


def _step(s: StepSummary, verdict: str) -> dict[str, Any]:
    return {"observed_us": s.observed_us or None, "bound": s.bound.value, "verdict": verdict, "reason": text(s.reason)}
