"""From an Analysis to JUnit XML, for CI servers that show tests: a finding is a failed test, or a skipped one."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import PurePath

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.step import StepSummary
from syncscan.report.phrases import USES, certainty, chain, line, measured, places, projected, sentences, what
from syncscan.report.story import Story, story_of
from syncscan.report.xml_text import clean
from syncscan.version import __version__

FAILING = (Severity.HIGH, Severity.MEDIUM)
"""Severities that count as failures; findings below are skipped tests, since they cost nothing worth a red build."""

_TEXT = 1000


def render(analysis: Analysis) -> str:
    """The findings as one test suite; times in seconds a step, as the format wants them."""
    found, s, story = analysis.shown.findings, analysis.step, story_of(analysis)
    failed = sum(f.severity in FAILING for f in found)
    counts = {"tests": str(max(len(found), 1)), "failures": str(failed), "errors": "0"}
    counts["skipped"] = str(len(found) - failed)
    suites = ET.Element("testsuites", {"name": "syncscan", **counts})
    suite = ET.SubElement(
        suites, "testsuite", {"name": clean(PurePath(analysis.trace.info.path).name), **counts, "time": _s(s.wait_us)}
    )
    _properties(suite, s, story.verdict)
    for f in found:
        suite.append(_case(f, s))
    if not found:
        ET.SubElement(suite, "testcase", {"classname": "syncscan", "name": "no host-device syncs", "time": "0"})
    ET.SubElement(suite, "system-out").text = clean(_said(story), 4 * _TEXT)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _properties(suite: ET.Element, s: StepSummary, verdict: str) -> None:
    properties = ET.SubElement(suite, "properties")
    values = {
        "syncscan": __version__,
        "bound": s.bound.value,
        "verdict": verdict,
    }
    if s.observed_us:
        values |= {"observed_us": f"{s.observed_us:.3f}", "wait_us": f"{s.wait_us:.3f}"}
    if s.recoverable_us is not None:
        values["recoverable_us"] = f"{s.recoverable_us:.3f}"
    for name, value in values.items():
        ET.SubElement(properties, "property", {"name": name, "value": value})


def _case(f: Finding, step: StepSummary) -> ET.Element:
    source = f.where.source
    where = source.file if source else " > ".join(f.where.scope) or "syncscan"
    case = ET.Element("testcase", {"classname": clean(where), "name": clean(f"{what(f)} [{f.id}]")})
    case.set("time", _s(f.wait_us))
    if source:
        case.set("file", clean(source.file))
        case.set("line", str(line(source)))
    message = clean(f"{f.diagnosis.title}: {measured(f, step)}", _TEXT)
    if f.severity in FAILING:
        failure = ET.SubElement(case, "failure", {"type": f.rule, "message": message})
        failure.text = _body(f, step)
    else:
        ET.SubElement(case, "skipped", {"message": message})
    return case


def _body(f: Finding, step: StepSummary) -> str:
    d, source = f.diagnosis, f.where.source
    lines = [
        f"{places(f.where)} {certainty(source) if source else ''}".rstrip(),
        f"chain: {' > '.join(chain(f))}",
        projected(f, step),
        f"why: {d.why}",
        f"instead: {d.fix}",
        f"safe to remove: {USES[f.where.use]}",
        f"fine: {d.when_fine}",
    ]
    return "\n".join(clean(text, _TEXT) for text in lines if text)


def _said(story: Story) -> str:
    """Verdict and advice."""
    return sentences(story.verdict, story.opening, *story.advice, story.steps_found, story.hidden, *story.warnings)


def _s(us: float) -> str:
    return f"{us / 1e6:.6f}"
