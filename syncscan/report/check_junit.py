"""From verdicts to JUnit XML, for CI servers that show tests: a limit is a test, a suite is a recording."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import PurePath

from syncscan.model.check import Verdict, Violation
from syncscan.model.finding import Finding
from syncscan.report.phrases import chain, places, what
from syncscan.report.units import duration, times
from syncscan.report.xml_text import clean

TEXT = 1000
"""Characters of a message."""
SHOWN = 50
"""Findings of a violation."""


def render(verdicts: Sequence[Verdict], rules_from: str) -> str:
    """One suite a recording: a failed test a limit that isn't kept, one that passed where all are."""
    suites = ET.Element("testsuites", {"name": "syncscan check", **_counts(verdicts)})
    for verdict in verdicts:
        suite = ET.SubElement(
            suites, "testsuite", {"name": clean(PurePath(verdict.path).name), **_counts([verdict]), "time": "0"}
        )
        for violation in verdict.violations:
            suite.append(_case(violation))
        if verdict.passed:
            named = {"classname": "syncscan.check", "name": clean(f"limits of {rules_from}"), "time": "0"}
            ET.SubElement(suite, "testcase", named)
        if verdict.said:
            ET.SubElement(suite, "system-out").text = clean(" ".join(verdict.said), 4 * TEXT)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _counts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    failed = sum(len(v.violations) for v in verdicts)
    tests = failed + sum(v.passed for v in verdicts)
    return {"tests": str(tests), "failures": str(failed), "errors": "0", "skipped": "0"}


def _case(violation: Violation) -> ET.Element:
    first = violation.findings[0].where.source if violation.findings else None
    case = ET.Element("testcase", {"classname": "syncscan.check", "name": clean(str(violation.limit)), "time": "0"})
    if first:
        case.set("file", clean(first.file))
        case.set("line", str(first.line))
    failure = ET.SubElement(case, "failure", {"type": "limit", "message": clean(violation.sentence, TEXT)})
    failure.text = "\n".join(_line(f) for f in violation.findings[:SHOWN])
    return case


def _line(finding: Finding) -> str:
    measured = f"waits {duration(finding.wait_us)}, {times(finding.per_step)}"
    where = places(finding.where) or "no line known"
    said = f"{where}: {what(finding)} {measured}; {' > '.join(chain(finding))}; {finding.diagnosis.fix}"
    return clean(said, TEXT)
